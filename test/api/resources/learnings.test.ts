import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { gateCalls } from './gates-kit.ts'

let server: TestServer, member: Person, other: Person
beforeAll(async () => {
  ;({ server, member, other } = await startWithPeople())
})
afterAll(() => server.stop())

const { agentCaller, post } = gateCalls(() => ({ server, member }))

const bullet = (text = 'Tag it first.', sources: unknown[] = ['https://example.com/notes']) => ({ text, sources })
const learning = (changes: Record<string, unknown> = {}) => ({ topic: 'Releases', bullets: [bullet()], ...changes })
const filed = async (changes: Record<string, unknown> = {}, token = member.token) => {
  const reply = await post('/learnings', learning(changes), token)
  expect(outcomeOf(reply)).toBe('201')
  return reply.body
}
const decide = (approvalId: string, decision: 'approve' | 'reject', body: object = {}, token = member.token) =>
  post(`/approvals/${approvalId}/${decision}`, body, token)
const read = (id: string) => server.ok(`/learnings/${id}`, { token: member.token })
/** The tasks that write this learning into the wiki. */
async function tasksOf(id: string) {
  const { data } = await server.ok('/tasks?limit=100')
  const tasks = await Promise.all(data.map((task: { id: string }) => server.ok(`/tasks/${task.id}`)))
  return tasks.filter(({ description }) => description?.includes(id) === true)
}

describe('filing', () => {
  test('a person proposes one, and any person decides', async () => {
    const made = await filed({
      bullets: [bullet('One.', ['https://a.example/x', { url: 'pinework://run/run_1' }]), bullet('Two.')],
      entities: [
        { type: 'Tool', name: 'GIT' },
        { type: 'tool', name: 'git' },
      ],
    })
    expect(made).toEqual({
      object: 'learning',
      id: expect.stringMatching(/^lrn_\w{16}$/),
      topic: 'Releases',
      status: 'proposed',
      bullets: [
        {
          ord: 0,
          text: 'One.',
          sources: [
            { url: 'https://a.example/x', ord: 0 },
            { url: 'pinework://run/run_1', ord: 1 },
          ],
        },
        { ord: 1, text: 'Two.', sources: [{ url: 'https://example.com/notes', ord: 0 }] },
      ],
      entities: [{ type: 'tool', name: 'git' }],
      conversationId: null,
      createdByAgentId: null,
      createdByUserId: null,
      runId: null,
      taskId: null,
      approvalId: expect.stringMatching(/^apr_/),
      rejectedReason: null,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    })
    expect(await server.ok(`/approvals/${made.approvalId}`, { token: other.token })).toMatchObject({
      trigger: 'learning_review',
      runId: null,
      assignedTo: null,
      requestedBy: { type: 'system', id: null },
      gatedThing: { kind: 'learning_review', safeSummary: 'Releases', scope: 'once' },
      prompt: expect.stringContaining('- Two.\n  - https://example.com/notes'),
    })
    expect(outcomeOf(await decide(made.approvalId, 'approve', {}, other.token))).toBe('200')
  })

  test('an agent proposes one in its run, which goes on; the owner decides, also after the run', async () => {
    const { agent, runId, token } = await agentCaller()
    const made = await filed({}, token)
    expect(made).toMatchObject({ createdByAgentId: agent.id, runId })
    expect(await server.ok(`/runs/${runId}`)).toMatchObject({ waitingOn: null })
    await server.ok(`/runs/${runId}/cancel`, { body: {} })
    expect((await server.ok(`/approvals/${made.approvalId}`)).status).toBe('open')
    expect(outcomeOf(await decide(made.approvalId, 'approve', {}, other.token))).toBe('403 approval_assignee_mismatch')
    expect(outcomeOf(await decide(made.approvalId, 'approve'))).toBe('200')
    expect(await read(made.id)).toMatchObject({ status: 'accepted' })
  })

  test('an agent decides about none, changes none, and files only for its own run', async () => {
    const { token } = await agentCaller()
    const stranger = await agentCaller()
    const made = await filed()
    expect(outcomeOf(await decide(made.approvalId, 'approve', {}, token))).toBe('403 agent_cannot_resolve_approval')
    expect((await server.call(`/learnings/${made.id}`, { method: 'PATCH', body: { topic: 'x' }, token })).status).toBe(
      403,
    )
    expect(outcomeOf(await post('/learnings', learning({ runId: stranger.runId }), token))).toBe('400 validation_error')
  })

  const bytes = (count: number) => 'é'.repeat(Math.floor(count / 2)) + 'x'.repeat(count % 2)
  const words = (count: number) => Array.from({ length: count }, () => 'a').join(' ')
  const url = (count: number) => `https://example.com/${'a'.repeat(count - 20)}`
  test.each<[string, Record<string, unknown>, boolean]>([
    ['a topic of 200 bytes', { topic: bytes(200) }, true],
    ['a topic of 201 bytes', { topic: bytes(201) }, false],
    ['an empty topic', { topic: ' ' }, false],
    ['no bullets', { bullets: [] }, false],
    ['five bullets', { bullets: Array.from({ length: 5 }, () => bullet()) }, true],
    ['six bullets', { bullets: Array.from({ length: 6 }, () => bullet()) }, false],
    ['25 words', { bullets: [bullet(words(25))] }, true],
    ['26 words', { bullets: [bullet(words(26))] }, false],
    ['26 words between lines and tabs', { bullets: [bullet(words(26).replaceAll(' ', '\n\t'))] }, false],
    ['a bullet of 1,024 bytes', { bullets: [bullet(bytes(1_024))] }, true],
    ['a bullet of 1,025 bytes', { bullets: [bullet(bytes(1_025))] }, false],
    ['no sources', { bullets: [bullet('x', [])] }, false],
    ['ten sources', { bullets: [bullet('x', Array(10).fill('https://a.example'))] }, true],
    ['eleven sources', { bullets: [bullet('x', Array(11).fill('https://a.example'))] }, false],
    ['a source of 2,048 bytes', { bullets: [bullet('x', [url(2_048)])] }, true],
    ['a source of 2,049 bytes', { bullets: [bullet('x', [url(2_049)])] }, false],
    ['http', { bullets: [bullet('x', ['http://a.example'])] }, false],
    ['no host', { bullets: [bullet('x', ['https://'])] }, false],
    ['no host but a path', { bullets: [bullet('x', ['https:///path'])] }, false],
    ['script', { bullets: [bullet('x', ['javascript:alert(1)'])] }, false],
    ['white space in a URL', { bullets: [bullet('x', ['https://a.example/ b'])] }, false],
    ['a link to a thing', { bullets: [bullet('x', [{ url: 'pinework://wiki_page/wik_1' }])] }, true],
    ['a link to no thing', { bullets: [bullet('x', ['pinework://wiki_page/'])] }, false],
    ['six tags', { entities: Array.from({ length: 6 }, (_, n) => ({ type: 't', name: `n${n}` })) }, true],
    ['seven tags', { entities: Array.from({ length: 7 }, (_, n) => ({ type: 't', name: `n${n}` })) }, false],
    ['a tag of 128 bytes', { entities: [{ type: 't', name: bytes(128) }] }, true],
    ['a tag of 129 bytes', { entities: [{ type: 't', name: bytes(129) }] }, false],
  ])('%s', async (_, changes, isTaken) => {
    const outcome = outcomeOf(await post('/learnings', learning(changes)))
    expect(outcome).toBe(isTaken ? '201' : '400 validation_error')
  })
})

describe('deciding', () => {
  test('accepting makes one task of the platform, for nobody yet', async () => {
    const made = await filed({ topic: 'Tags' })
    expect(outcomeOf(await decide(made.approvalId, 'approve', { reason: 'Good' }))).toBe('200')
    expect(await read(made.id)).toMatchObject({ status: 'accepted', rejectedReason: null, taskId: null })
    const tasks = await tasksOf(made.id)
    expect(tasks).toMatchObject([
      { title: 'Add learning to wiki: Tags', status: 'open', assignee: null, createdBy: { type: 'system', id: null } },
    ])
    expect(tasks[0].description).toContain('- Tag it first.\n  - https://example.com/notes')
    expect(outcomeOf(await decide(made.approvalId, 'reject'))).toBe('409 approval_resolved')
    expect(await tasksOf(made.id)).toHaveLength(1)
  })

  test('two people who accept one at once make one task', async () => {
    const made = await filed()
    const outcomes = await Promise.all(
      [member, other, member, other].map(async ({ token }) =>
        outcomeOf(await decide(made.approvalId, 'approve', {}, token)),
      ),
    )
    expect(outcomes.toSorted()).toEqual(['200', ...Array<string>(3).fill('409 approval_resolved')])
    expect(await tasksOf(made.id)).toHaveLength(1)
  })

  test('rejecting keeps the note, and makes no task', async () => {
    const [noted, plain] = [await filed(), await filed()]
    await decide(noted.approvalId, 'reject', { reason: 'Known already.' })
    await decide(plain.approvalId, 'reject')
    expect(await read(noted.id)).toMatchObject({ status: 'rejected', rejectedReason: 'Known already.' })
    expect(await read(plain.id)).toMatchObject({ status: 'rejected', rejectedReason: 'Rejected without a note.' })
    expect([...(await tasksOf(noted.id)), ...(await tasksOf(plain.id))]).toEqual([])
  })

  test('only one that is proposed can be changed; its approval stays as it was', async () => {
    const made = await filed()
    const before = await server.ok(`/approvals/${made.approvalId}`)
    const body = { topic: 'Notes', bullets: [bullet('Write them.')], entities: [{ type: 'Team', name: 'Docs' }] }
    const after = await server.ok(`/learnings/${made.id}`, { method: 'PATCH', body, token: other.token })
    expect(after).toMatchObject({
      topic: 'Notes',
      bullets: [{ ord: 0, text: 'Write them.' }],
      entities: [{ type: 'team', name: 'docs' }],
      status: 'proposed',
    })
    expect(await read(made.id)).toEqual(after)
    expect(await server.ok(`/approvals/${made.approvalId}`)).toEqual(before)
    await decide(made.approvalId, 'approve')
    const late = await server.call(`/learnings/${made.id}`, { method: 'PATCH', body: {}, token: member.token })
    expect(outcomeOf(late)).toBe('409 learning_not_editable')
    expect(await tasksOf(made.id)).toMatchObject([{ title: 'Add learning to wiki: Notes' }])
  })
})

describe('listing', () => {
  test('finds them by status, tag, approval and conversation, whatever the case of a tag', async () => {
    const { id: agentId } = await server.createAgent({}, member.token)
    const { body: dm } = await post('/conversations', { kind: 'dm', participants: [agentId] })
    const name = `tag-${server.world.uuid()}`
    const one = await filed({ entities: [{ type: 'tool', name }], conversationId: dm.id })
    const two = await filed({ entities: [{ type: 'team', name }] })
    await decide(two.approvalId, 'reject')
    const listed = async (query: string, token = member.token) =>
      (await server.ok(`/learnings?${query}`, { token })).data.map(({ id }: { id: string }) => id)
    expect(await listed(`entityName=${name.toUpperCase()}`)).toEqual([two.id, one.id])
    expect(await listed(`entityName=${name}&entityType=Tool`)).toEqual([one.id])
    expect(await listed(`entityName=${name}&status=rejected`)).toEqual([two.id])
    expect(await listed(`approvalId=${one.approvalId}`)).toEqual([one.id])
    expect(await listed(`conversationId=${dm.id}`)).toEqual([one.id])
    // Who does not see the conversation does not hear what comes from it by asking for it.
    expect(await listed(`conversationId=${dm.id}`, other.token)).toEqual([])
    expect(outcomeOf(await post('/learnings', learning({ conversationId: dm.id }), other.token))).toBe(
      '404 conversation_not_found',
    )
    const first = await server.ok('/learnings?limit=1', { token: member.token })
    expect(first).toMatchObject({ hasMore: true, data: [{ id: two.id }] })
    expect(await listed(`limit=1&after=${first.nextCursor}`)).toEqual([one.id])
  })
})
