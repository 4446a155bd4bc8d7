import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type Person, type Reply, type TestServer } from '../../kit/server.ts'
import { makeLearning, newLearning } from '../facts/kit/learnings.ts'
import { makeTask } from '../facts/kit/tasks.ts'
import { agentCalls } from './agent-calls-kit.ts'

let server: TestServer, admin: Person, member: Person, other: Person
beforeAll(async () => {
  ;({ server, admin, member, other } = await startWithPeople())
})
afterAll(() => server.stop())

const { agentCaller, post } = agentCalls(() => ({ server, member }))

const file = (body: Record<string, unknown>, token = member.token): Promise<Reply> =>
  server.call('/learnings', { body: { ...newLearning, ...body }, token })
const bullet = (changes: Record<string, unknown>) => ({ bullets: [{ ...newLearning.bullets[0], ...changes }] })
const read = (id: string, token = member.token) => server.ok(`/learnings/${id}`, { token })
const tasksNamed = async (topic: string) =>
  (await server.ok(`/tasks?include=description&q=${encodeURIComponent(topic)}`)).data
/** Filed by an agent of the member, with a topic that only it has. */
async function ofAgent(body: Record<string, unknown> = {}) {
  const caller = await agentCaller(body)
  const topic = `Topic ${server.world.uuid()}`
  const learning = await makeLearning({ server }, { topic, token: caller.token })
  return { ...caller, topic, learning, id: learning.id as string, approvalId: learning.approvalId as string }
}

describe('filing', () => {
  test('shows the learning, and raises an approval without a run for the owner of the agent', async () => {
    const { agent, runId, token } = await agentCaller()
    const reply = await file({ entities: [{ type: 'Repo', name: ' WEB ' }] }, token)
    expect(reply.status).toBe(201)
    expect(reply.body).toEqual({
      object: 'learning',
      id: expect.stringMatching(/^lrn_\w{16}$/),
      topic: 'Builds',
      status: 'proposed',
      bullets: [
        { ord: 0, text: newLearning.bullets[0]!.text, sources: [{ url: 'https://example.com/builds', ord: 0 }] },
      ],
      entities: [{ type: 'repo', name: 'web' }],
      conversationId: null,
      createdByAgentId: agent.id,
      createdByUserId: null,
      runId,
      taskId: null,
      approvalId: expect.stringMatching(/^apr_\w{16}$/),
      rejectedReason: null,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    })
    const approval = await server.ok(`/approvals/${reply.body.approvalId}`, { token: member.token })
    expect(approval).toMatchObject({
      trigger: 'learning_review',
      status: 'open',
      runId: null,
      requestedBy: { type: 'agent', id: agent.id },
      assignedTo: { type: 'user', id: member.userId },
      gatedThing: { kind: 'learning_review', name: reply.body.id, safeSummary: 'Builds' },
    })
    expect(approval.prompt).toContain(newLearning.bullets[0]!.text)
  })

  test('by a person names nobody, and any person may review it', async () => {
    const { id, approvalId, createdByAgentId, runId } = await makeLearning({ server }, { token: member.token })
    expect([createdByAgentId, runId]).toEqual([null, null])
    expect((await server.ok(`/approvals/${approvalId}`)).assignedTo).toBeNull()
    expect(outcomeOf(await post(`/approvals/${approvalId}/approve`, {}, other.token))).toBe('200')
    expect((await read(id)).status).toBe('accepted')
  })

  test('does not stop the run, and outlives its end', async () => {
    const { runId, approvalId, id } = await ofAgent()
    expect((await server.ok(`/runs/${runId}`)).waitingOn ?? null).toBeNull()
    await server.ok(`/runs/${runId}/cancel`, { body: {}, token: member.token })
    expect((await server.ok(`/runs/${runId}`)).status).toBe('cancelled')
    server.world.advance(400 * 24 * 3_600_000)
    await server.plane.sweeper.runAll()
    expect((await server.ok(`/approvals/${approvalId}`)).status).toBe('open')
    expect(outcomeOf(await post(`/approvals/${approvalId}/approve`, {}))).toBe('200')
    expect((await server.ok(`/learnings/${id}`)).status).toBe('accepted')
  })

  test('comes from the run of the agent, its task and its conversation, unless others are named', async () => {
    const { agent, token, runId } = await agentCaller()
    const [task, another] = [await makeTask({ server }), await makeTask({ server })]
    await server.database.root('runs').where({ id: runId }).update({ task_id: task.id })
    expect((await file({}, token)).body).toMatchObject({ runId, taskId: task.id })
    expect((await file({ runId: 'current', taskId: another.key }, token)).body).toMatchObject({ taskId: another.id })
    const stranger = await agentCaller()
    expect(outcomeOf(await file({ runId: stranger.runId }, token))).toBe('404 run_not_found')
    expect((await file({ runId })).body).toMatchObject({ runId, taskId: null, createdByAgentId: null })
    expect(outcomeOf(await file({ runId: 'current' }))).toBe('404 run_not_found')
    const conversation = await server.ok('/conversations', {
      body: { kind: 'channel', title: 'Build talk', participants: [{ type: 'agent', id: agent.id }] },
      headers: { 'idempotency-key': crypto.randomUUID() },
      token: member.token,
    })
    const conversationId = conversation.id
    expect((await file({ conversationId }, token)).body).toMatchObject({ conversationId })
    const unseen = await file({ conversationId }, stranger.token)
    expect([outcomeOf(unseen), unseen.body.error.param]).toEqual(['404 conversation_not_found', 'conversationId'])
    const found = async (by: string) =>
      (await server.ok(`/learnings?conversationId=${conversationId}`, { token: by })).data.length
    expect([await found(member.token), await found(token), await found(stranger.token)]).toEqual([1, 1, 0])
    // The other agent reads the learning itself, but not where it comes from.
    const { data } = await server.ok('/learnings?limit=1', { token: stranger.token })
    expect(data[0]).toMatchObject({ createdByAgentId: agent.id, conversationId: null })
  })
})

describe('limits', () => {
  const words = (count: number) => Array.from({ length: count }, () => 'wörd').join(' \t\n')
  const url = (bytes: number) => `https://h.example/${'ü'.repeat((bytes - 18) / 2)}`
  const good: Record<string, Record<string, unknown>> = {
    'a topic of 200 bytes': { topic: 'ü'.repeat(100) },
    '25 words between any white space': bullet({ text: words(25) }),
    'a bullet of 1,024 bytes': bullet({ text: '漢'.repeat(341) + 'x' }),
    'five bullets': { bullets: Array.from({ length: 5 }, () => newLearning.bullets[0]) },
    'ten sources': bullet({ sources: Array.from({ length: 10 }, () => 'https://example.com') }),
    'a source of 2,048 bytes': bullet({ sources: [url(2_048)] }),
    'a source as an object': bullet({ sources: [{ url: 'https://example.com' }] }),
    'an internal link': bullet({ sources: ['pinework://wiki_page/wik_1', 'pinework://task/WEB-12'] }),
    'six entities': { entities: Array.from({ length: 6 }, (_, at) => ({ type: 'repo', name: `r${at}` })) },
    'a name of 128 bytes': { entities: [{ type: 'repo', name: 'ü'.repeat(64) }] },
    'no entities': { entities: [] },
  }
  const bad: Record<string, Record<string, unknown>> = {
    'no topic': { topic: ' ' },
    'a topic of 201 bytes': { topic: `${'ü'.repeat(100)}x` },
    'a topic of two lines': { topic: 'a\nb' },
    'no bullets': { bullets: [] },
    'six bullets': { bullets: Array.from({ length: 6 }, () => newLearning.bullets[0]) },
    'an empty bullet': bullet({ text: '\n' }),
    '26 words': bullet({ text: words(26) }),
    'a bullet of 1,025 bytes': bullet({ text: '漢'.repeat(341) + 'xx' }),
    'no sources': bullet({ sources: [] }),
    'eleven sources': bullet({ sources: Array.from({ length: 11 }, () => 'https://example.com') }),
    'a source of 2,050 bytes': bullet({ sources: [url(2_050)] }),
    ...Object.fromEntries(
      [
        'http://example.com',
        'https://',
        'https:///path',
        'https://?q',
        'https://a b.example',
        'https://a.example/<script>',
        'https://[::1',
        'javascript:alert(1)',
        'pinework://task',
        'pinework://task/',
        'pinework:///WEB-1',
        'pinework://Task/a b',
        'file:///etc/passwd',
        '',
      ].map((source) => [`the source \`${source}\``, bullet({ sources: [source] })]),
    ),
    'seven entities': { entities: Array.from({ length: 7 }, (_, at) => ({ type: 'repo', name: `r${at}` })) },
    'a name of 130 bytes': { entities: [{ type: 'repo', name: 'ü'.repeat(65) }] },
    'an entity without a name': { entities: [{ type: 'repo', name: ' ' }] },
  }
  test.each(Object.entries(good))('takes %s', async (_, body) => {
    expect(outcomeOf(await file(body))).toBe('201')
  })
  test.each(Object.entries(bad))('refuses %s', async (_, body) => {
    expect(outcomeOf(await file(body))).toBe('400 validation_error')
  })
})

describe('a review', () => {
  test('that accepts makes one task, of the platform and for nobody', async () => {
    const { id, approvalId, topic, token } = await ofAgent()
    const before = await read(id)
    expect(outcomeOf(await post(`/approvals/${approvalId}/approve`, { reason: 'Good.' }, token))).toBe(
      '403 agent_cannot_resolve_approval',
    )
    for (const by of [other.token, admin.token])
      expect(outcomeOf(await post(`/approvals/${approvalId}/approve`, {}, by))).toBe('403 approval_assignee_mismatch')
    expect(await tasksNamed(topic)).toEqual([])
    const approval = (await post(`/approvals/${approvalId}/approve`, { reason: 'Good.' })).body
    expect(approval).toMatchObject({ status: 'resolved', result: { outcome: 'approve', reason: 'Good.' } })
    expect(await read(id)).toEqual({ ...before, status: 'accepted', updatedAt: expect.any(String) })
    const tasks = await tasksNamed(topic)
    expect(tasks).toMatchObject([
      { title: `Add learning to wiki: ${topic}`, status: 'open', assignee: null, createdBy: { type: 'system' } },
    ])
    expect(tasks[0].description).toContain('<https://example.com/builds>')
    expect((await server.ok(`/tasks/${tasks[0].id}/watchers`)).data).toEqual([])
    expect(outcomeOf(await post(`/approvals/${approvalId}/reject`, {}))).toBe('409 approval_resolved')
    expect((await tasksNamed(topic)).length).toBe(1)
  })

  test('that rejects keeps the note, or one of its own', async () => {
    const [first, second] = [await ofAgent(), await ofAgent()]
    await post(`/approvals/${first.approvalId}/reject`, { reason: 'Only true in May.' })
    expect(await read(first.id)).toMatchObject({ status: 'rejected', rejectedReason: 'Only true in May.' })
    await post(`/approvals/${second.approvalId}/reject`, { reason: ' ' })
    expect(await read(second.id)).toMatchObject({ status: 'rejected', rejectedReason: 'Rejected without a note.' })
    expect(await tasksNamed(first.topic)).toEqual([])
  })

  test('by several at once has one winner and one task', async () => {
    const { id, approvalId, topic } = await ofAgent()
    const verbs = ['approve', 'approve', 'reject', 'approve', 'reject', 'approve']
    const outcomes = await Promise.all(
      verbs.map(async (verb) => [verb, outcomeOf(await post(`/approvals/${approvalId}/${verb}`, {}))]),
    )
    const won = outcomes.filter(([, outcome]) => outcome === '200')
    expect(won.length).toBe(1)
    expect(outcomes.filter(([, outcome]) => outcome === '409 approval_resolved').length).toBe(5)
    const isAccepted = won[0]![0] === 'approve'
    expect((await read(id)).status).toBe(isAccepted ? 'accepted' : 'rejected')
    expect((await tasksNamed(topic)).length).toBe(isAccepted ? 1 : 0)
  })

  test('and an edit at once leave the task with the text that was accepted', async () => {
    const { id, approvalId, topic } = await ofAgent()
    const edited = bullet({ text: 'Edited meanwhile.' })
    const [edit, approval] = await Promise.all([
      server.call(`/learnings/${id}`, { method: 'PATCH', body: edited, token: member.token }),
      post(`/approvals/${approvalId}/approve`, {}),
    ])
    expect(outcomeOf(approval)).toBe('200')
    const learning = await read(id)
    expect(['200', '409 learning_not_editable']).toContain(outcomeOf(edit))
    expect(learning.bullets[0].text === 'Edited meanwhile.').toBe(outcomeOf(edit) === '200')
    expect((await tasksNamed(topic))[0].description).toContain(learning.bullets[0].text)
  })
})

describe('an edit', () => {
  const change = (id: string, body: unknown, token = member.token) =>
    server.call(`/learnings/${id}`, { method: 'PATCH', body, token })

  test('replaces what it names, and leaves the approval as it is', async () => {
    const { id, approvalId, token } = await ofAgent()
    const approval = await server.ok(`/approvals/${approvalId}`)
    const before = await read(id)
    expect(outcomeOf(await change(id, { topic: 'x' }, token))).toBe('403 http_exception')
    expect((await change(id, { topic: ' Other ' })).body).toEqual({
      ...before,
      topic: 'Other',
      updatedAt: expect.any(String),
    })
    const changed = (await change(id, { entities: [], ...bullet({ text: 'New.' }) })).body
    expect(changed).toMatchObject({ topic: 'Other', entities: [], bullets: [{ ord: 0, text: 'New.' }] })
    expect(outcomeOf(await change(id, { bullets: [] }))).toBe('400 validation_error')
    expect(await server.ok(`/approvals/${approvalId}`)).toEqual(approval)
    await post(`/approvals/${approvalId}/reject`, {})
    expect(outcomeOf(await change(id, { topic: 'x' }))).toBe('409 learning_not_editable')
  })
})

describe('the list', () => {
  test('has pages, newest first, and filters', async () => {
    const owner = await server.addPerson('owner', `learn-${crypto.randomUUID().slice(0, 8)}`)
    const { token } = owner
    const filed = []
    for (const name of ['web', 'app', 'web'])
      filed.push(await makeLearning({ server }, { token, entities: [{ type: 'repo', name }] }))
    const ids = async (query: string) =>
      (await server.ok(`/learnings${query}`, { token })).data.map(({ id }: { id: string }) => id)
    const [first, second, third] = filed.map(({ id }) => id)
    expect(await ids('')).toEqual([third, second, first])
    const page = await server.ok('/learnings?limit=2', { token })
    expect([page.hasMore, page.data.length]).toEqual([true, 2])
    expect(await ids(`?limit=2&cursor=${page.nextCursor}`)).toEqual([first])
    expect(await ids(`?limit=2&after=${page.nextCursor}`)).toEqual([first])
    expect(await ids('?entityName=WEB&entityType=Repo')).toEqual([third, first])
    expect(await ids(`?approvalId=${filed[1].approvalId}`)).toEqual([second])
    await post(`/approvals/${filed[0].approvalId}/reject`, {}, token)
    expect(await ids('?status=proposed')).toEqual([third, second])
    expect(await ids('?status=rejected')).toEqual([first])
    expect(outcomeOf(await server.call('/learnings?status=open', { token }))).toBe('400 validation_error')
    expect(outcomeOf(await server.call('/learnings?limit=101', { token }))).toBe('400 validation_error')
    expect(outcomeOf(await server.call('/learnings?cursor=x', { token }))).toBe('400 invalid_cursor')
    expect(outcomeOf(await server.call(`/learnings/${first}`))).toBe('404 learning_not_found')
  })

  test('hides what a private agent proposes from all but its owner, its reviewer and admins', async () => {
    const { id, approvalId, runId, token } = await ofAgent({ visibility: 'private' })
    const stranger = await agentCaller()
    const outcome = async (by: string) => {
      const { data } = await server.ok('/learnings?limit=100', { token: by })
      const isListed = data.some((one: { id: string }) => one.id === id)
      const reply = await server.call(`/learnings/${id}`, { token: by })
      expect(reply.status === 200).toBe(isListed)
      return outcomeOf(reply)
    }
    for (const by of [member.token, admin.token, token]) expect(await outcome(by)).toBe('200')
    for (const by of [other.token, stranger.token]) expect(await outcome(by)).toBe('404 learning_not_found')
    const assignment = { assignedTo: { type: 'user', id: other.userId }, reason: 'on call' }
    expect(outcomeOf(await post(`/approvals/${approvalId}/assign`, assignment, admin.token))).toBe('200')
    expect(await outcome(other.token)).toBe('200')
    expect(outcomeOf(await post(`/approvals/${approvalId}/approve`, {}, other.token))).toBe('200')
    expect(await outcome(stranger.token)).toBe('200')
    expect((await read(id, stranger.token)).runId).toBeNull()
    expect((await read(id)).runId).toBe(runId)
  })
})
