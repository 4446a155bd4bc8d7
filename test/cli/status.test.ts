import { afterEach, beforeEach, expect, test } from 'vitest'
import { FakeDevice } from '../kit/fake-device.ts'
import { made } from '../api/resources/tasks-kit.ts'
import { useRealServer } from './real-server.ts'

// `svc status` and `svc why`: what a person looks at first.

const real = useRealServer()
let device: FakeDevice
beforeEach(async () => {
  device = await FakeDevice.connect(real.server)
})
afterEach(() => device.disconnect())

const svc = async (...args: string[]) => {
  const { status, stdout, stderr } = await real.svc(args, {})
  if (status !== 0) throw new Error(stderr)
  return stdout
}

test('what waits for a person comes first, with the command that answers, then what failed, works and waits', async () => {
  const { server } = real
  expect(JSON.parse(await svc('status'))).toMatchObject({ summary: 'Nothing works, and nothing waits for you.' })
  const agent = await server.createAgent()
  const start = () => server.startRun(agent.id)
  const failed = await start()
  await (await device.take()).end('error', { message: 'The program is not there.' })
  const working = await start()
  const run = await device.take()
  await run.events({ kind: 'text', data: { text: 'I read the plan.\nNow I ask\n' } })
  const { question } = await made(server, '/questions', { prompt: 'Which region?' }, run.token)
  const body = { maxConcurrentRuns: 1 }
  await server.ok(`/devices/${device.identity.deviceId}`, { method: 'PATCH', body })
  const other = await server.createAgent()
  const waiting = await server.startRun(other.id)

  const shown = JSON.parse(await svc('status'))
  const idsOf = (of: string) => shown[of].map(({ id }: { id: string }) => id)
  expect(['questions', 'failed', 'working', 'waiting'].map(idsOf)).toEqual([
    [question.id],
    [failed],
    [working],
    [waiting],
  ])
  expect(shown).toMatchObject({
    summary: '1 question waits for an answer; 1 run has failed lately; 1 run works; 1 run waits to start.',
    next: `svc question answer ${question.id} "..."`,
  })
  expect(shown.working).toMatchObject([{ lastLine: 'Now I ask' }])
  const table = await svc('status', '-o', 'table')
  for (const part of ['Which region?', 'Now I ask', failed, working, waiting, 'is busy']) expect(table).toContain(part)

  expect(JSON.parse(await svc('why', failed))).toMatchObject({
    because: 'The program is not there.',
    command: `svc run retry ${failed}`,
  })
  expect(await svc('why', waiting, '-o', 'table')).toContain('is busy')
  const task = JSON.parse(await svc('task', 'create', '--title', 'Nobody has it'))
  for (const reference of [task.key, task.key.toLowerCase(), task.id])
    expect(JSON.parse(await svc('why', reference))).toMatchObject({ task: { key: task.key }, reason: 'unassigned' })
  expect(await svc('why', task.key, '-o', 'table')).toContain('It is assigned to nobody.')
  // An agent sees the same of its workspace as far as it may.
  const { status, stdout, stderr } = await real.svc(['status'], { env: { SVC_TOKEN: run.token, SVC_RUN_ID: working } })
  if (status !== 0) throw new Error(stderr)
  expect([status, JSON.parse(stdout).summary]).toEqual([0, shown.summary])
  await run.end('question_asked')
})

test('a limit that a provider told is shown with its end', async () => {
  const { server } = real
  const agent = await server.createAgent({ harness: 'claude', command: null })
  const runId = await server.startRun(agent.id)
  const limitResetsAt = server.world.now() + 3 * 3_600_000
  // Runs that the test before left waiting come first.
  let run = await device.take()
  for (; run.runId !== runId; run = await device.take()) await run.end()
  await run.end('rate_limited', { sessionId: 'ses-1', limitResetsAt })
  const isTold = async () => (await server.ok('/devices')).devices[0].limits
  await expect.poll(isTold).toHaveLength(1)
  const shown = JSON.parse(await svc('status'))
  expect(shown.summary).toContain('1 limit of a provider is reached')
  const until = new Date(limitResetsAt).toISOString()
  expect(shown.limits).toMatchObject([{ provider: 'claude', reason: 'rate_limit', until }])
  expect(await svc('status', '-o', 'tsv')).toMatch(new RegExp(`claude\trate limit\tsign in\t\\S+\t${until}\t`))
})

test('how much of a limit is used is shown, with when it begins anew', async () => {
  const { server } = real
  const agent = await server.createAgent({ harness: 'codex', command: null })
  const runId = await server.startRun(agent.id)
  const resetsAt = server.world.now() + 2 * 3_600_000
  let run = await device.take()
  for (; run.runId !== runId; run = await device.take()) await run.end()
  await run.end('completed', { limitsUsed: [{ windowMinutes: 300, models: null, usedPercent: 62, resetsAt }] })
  const isTold = async () => (await server.ok('/devices')).devices[0].limitsInUse
  await expect.poll(isTold).toHaveLength(1)
  const shown = JSON.parse(await svc('status'))
  expect(shown.limitsInUse).toMatchObject([{ provider: 'codex', limit: '5-hour', usedPercent: 62 }])
  const until = new Date(resetsAt).toISOString()
  expect(await svc('status', '-o', 'tsv')).toContain(`codex\t62%\tthe 5-hour limit\t${until}\tsign in\t`)
})

test('a device that is away is shown', async () => {
  const { displayName } = (await real.server.ok('/devices')).devices[0]
  expect(JSON.parse(await svc('status'))).toMatchObject({ away: [] })
  await device.disconnect()
  real.server.world.advance(600_000)
  const shown = JSON.parse(await svc('status'))
  expect(shown.summary).toMatch(/devices? (is|are) away/)
  expect(shown.away[0]).toMatchObject({ displayName })
})

test('hours that are none are refused', async () => {
  const { status, stderr } = await real.svc(['status', '--hours', 'soon'], {})
  expect([status, stderr]).toEqual([2, expect.stringContaining('--hours takes a number of hours')])
})
