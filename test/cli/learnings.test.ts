import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeLearning } from '../api/facts/kit/learnings.ts'
import { useRealServer } from './real-server.ts'

// The commands of learnings, by the real `svc` against a real server.

const real = useRealServer()
const call = (line: readonly string[], env: Record<string, string> = {}) => real.svc(['learning', ...line], { env })

async function svc(line: readonly string[], env?: Record<string, string>) {
  const end = await call(line, env)
  if (end.status !== 0) throw new Error(`svc learning ${line.join(' ')}: ${end.status} ${end.stderr}`)
  return JSON.parse(end.stdout)
}

/** The rows of a review of several, with the exit status. */
async function rowsOf(line: readonly string[]) {
  const { status, stdout } = await call(line)
  const { data } = JSON.parse(stdout) as { data: { learningId: string; ok: boolean; status?: string; code?: string }[] }
  return { status, rows: data.map(({ learningId, ok, status, code }) => [learningId, ok, status ?? code]) }
}

test('all commands of docs/learnings.md work in their order', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/learnings.md'), 'utf8')
  const lines = page.split('\n').filter((line) => line.startsWith('svc learning '))
  expect(lines.length).toBe(7)
  const [other, third] = [await makeLearning({ server: real.server }), await makeLearning({ server: real.server })]
  const values: Record<string, string> = { 'OTHER,THIRD': `${other.id},${third.id}` }
  for (const line of lines) {
    const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? values[word!] ?? word!)
    const end = await call(words.slice(2))
    expect([line, end.status, end.stderr]).toEqual([line, 0, ''])
    const reply = JSON.parse(end.stdout)
    if (line.startsWith('svc learning add')) values['LEARNING'] = reply.id
    if (line.startsWith('svc learning accept LEARNING')) expect(reply.status).toBe('accepted')
  }
})

test('each source belongs to the bullet before it, in whatever way the flags are written', async () => {
  const [a, b, c] = ['https://a.example', 'pinework://task/WEB-1', 'https://c.example']
  const line = ['add', '--bullet', 'One.', '--source', a, `--source=${b}`, '--topic=T', '--bullet=Two.', '--source', c]
  const { bullets, entities } = await svc([...line, '--entity', 'Repo:acme/web', '--entity=url:https://x'])
  expect(bullets).toEqual([
    {
      ord: 0,
      text: 'One.',
      sources: [
        { url: a, ord: 0 },
        { url: b, ord: 1 },
      ],
    },
    { ord: 1, text: 'Two.', sources: [{ url: c, ord: 0 }] },
  ])
  expect(entities).toEqual([
    { type: 'repo', name: 'acme/web' },
    { type: 'url', name: 'https://x' },
  ])
})

test('what cannot be sent is told', async () => {
  const faults: [string[], string][] = [
    [['--source', 'https://a.example', '--bullet', 'One.'], 'belongs to the --bullet before it'],
    [['--bullet', 'One.', '--bullet', 'Two.', '--source', 'https://a.example'], '`One.` has no source'],
    [['--bullet', 'One.'], 'needs --source'],
    [['--bullet', 'One.', '--source', 'https://a.example', '--entity', 'web'], '`web` is no entity'],
  ]
  for (const [flags, message] of faults) {
    const end = await call(['add', '--topic', 'T', ...flags])
    expect([flags, end.status, end.stderr]).toEqual([flags, 2, expect.stringContaining(message)])
  }
  for (const line of [[], ['--ids', ','], ['--all-proposed-before', 'May'], ['lrn_1', '--ids', 'lrn_2']])
    expect((await call(['accept', ...line])).status).toBe(2)
  expect((await call(['accept', 'lrn_0000000000000000'])).stderr).toContain('learning_not_found')
})

test('a review of several says what happened to each', async () => {
  const { agent, token } = await real.server.agentCaller()
  const member = await real.server.addPerson('member')
  const [mine, reviewed, theirs] = [
    await makeLearning({ server: real.server }),
    await makeLearning({ server: real.server }),
    await makeLearning({ server: real.server }, { token }),
  ]
  await svc(['reject', reviewed.id])
  const assignment = { assignedTo: { type: 'user', id: member.userId }, reason: 'x' }
  const headers = { 'idempotency-key': crypto.randomUUID() }
  await real.server.ok(`/approvals/${theirs.approvalId}/assign`, { body: assignment, headers })
  expect(theirs.createdByAgentId).toBe(agent.id)
  const unknown = 'lrn_0000000000000000'
  const ids = [unknown, reviewed.id, theirs.id, mine.id, mine.id].join(', ')
  expect(await rowsOf(['accept', '--ids', ids, '--note', 'Good.'])).toEqual({
    status: 1,
    rows: [
      [unknown, false, 'learning_not_found'],
      [reviewed.id, false, 'approval_resolved'],
      [theirs.id, false, 'approval_assignee_mismatch'],
      [mine.id, true, 'accepted'],
    ],
  })
  expect((await real.server.ok(`/approvals/${mine.approvalId}`)).result).toEqual({
    outcome: 'approve',
    reason: 'Good.',
  })
})

test('all that were filed before a time are reviewed, the oldest first', async () => {
  const old = [await makeLearning({ server: real.server }), await makeLearning({ server: real.server })]
  real.server.world.advance(60_000)
  const fresh = await makeLearning({ server: real.server })
  const reply = await rowsOf(['reject', '--all-proposed-before', fresh.createdAt, '--note', 'Late.'])
  const rows = reply.rows.filter(([id]) => old.some((one) => one.id === id) || id === fresh.id)
  expect(rows).toEqual(old.map(({ id }) => [id, true, 'rejected']))
  expect((await svc(['get', old[0].id])).rejectedReason).toBe('Late.')
  expect((await svc(['get', fresh.id])).status).toBe('proposed')
})

test('in a run agents file and read, and nobody reviews', async () => {
  const { runId, token } = await real.server.agentCaller()
  const env = { SVC_TOKEN: token, SVC_RUN_ID: runId }
  const filed = await svc(['add', '--topic', 'T', '--bullet', 'One.', '--source', 'https://a.example'], env)
  expect(filed).toMatchObject({ runId, status: 'proposed' })
  expect((await svc(['list', '--status', 'proposed'], env)).data[0].id).toBe(filed.id)
  for (const line of [[filed.id], ['--ids', filed.id], ['--all-proposed-before', '2100-01-01']]) {
    const end = await call(['accept', ...line], env)
    expect([end.status, JSON.parse(end.stderr).error.code]).toEqual([1, 'cli.agent_cannot_resolve_approval'])
  }
  // Without the variable the server refuses.
  expect((await call(['reject', filed.id], { SVC_TOKEN: token })).stderr).toContain('"agent_cannot_resolve_approval"')
  expect((await svc(['get', filed.id])).status).toBe('proposed')
})
