import { afterAll, beforeAll, expect, test } from 'vitest'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { call, move, task, wakesAreAnswered } from './tasks-kit.ts'

// Writes that decide by what another one changes at the same moment. On two replicas, as in one process, what is left and
// what was answered is that of one after the other, in some order.

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(async () => server?.stop())

const rounds = Array.from({ length: 5 }, (_, round) => round)
const remove = (agentId: string) => server.call(`/agents/${agentId}`, { method: 'DELETE' })
const start = (agentId: string, body: object = {}) => server.call(`/agents/${agentId}/runs`, { body })
const patch = (agentId: string, body: object) => server.call(`/agents/${agentId}`, { method: 'PATCH', body })
const liveRuns = (where: Record<string, unknown>): Promise<{ id: string; agent_id: string }[]> =>
  server.database.root('runs').where(where).whereNull('ended_at').select('id', 'agent_id')

test('an agent that is deleted while it is woken runs no more', async () => {
  for (const _ of rounds) {
    const { id } = await server.createAgent()
    const [woken, removed] = await Promise.all([start(id), remove(id)])
    expect([woken.status, removed.status]).toEqual([200, 200])
    expect(await liveRuns({ agent_id: id })).toEqual([])
  }
})

test('of two assignments of one task only the agent that has it in the end works on it', async () => {
  for (const round of rounds) {
    const agents = [await server.createAgent(), await server.createAgent(), await server.createAgent()]
    const { id } = await task(server)
    const replies = await Promise.all(
      agents.map((agent) => call(server, `/tasks/${id}/assign`, { assignee: agent.id })),
    )
    expect(replies.map(outcomeOf)).toEqual(['200', '200', '200'])
    await wakesAreAnswered(server, id)
    const { assignee } = await server.ok(`/tasks/${id}`)
    const works = await liveRuns({ task_id: id })
    expect(
      works.map((run) => run.agent_id),
      `round ${round}`,
    ).toEqual([assignee.id])
  }
})

test('no open task stays with an agent that is deleted while it gets the task', async () => {
  for (const _ of rounds) {
    const agent = await server.createAgent()
    const { id } = await task(server)
    const [assigned] = await Promise.all([
      call(server, `/tasks/${id}/assign`, { assignee: agent.id }),
      remove(agent.id),
    ])
    expect(['200', '404 assignee_not_found']).toContain(outcomeOf(assigned))
    expect((await server.ok(`/tasks/${id}`)).assignee).toBeNull()
  }
})

test('two agents made to report to each other end in no cycle', async () => {
  for (const _ of rounds) {
    const [one, two] = [await server.createAgent(), await server.createAgent()]
    const replies = await Promise.all([patch(one.id, { reportingTo: two.id }), patch(two.id, { reportingTo: one.id })])
    expect(replies.map(outcomeOf).toSorted()).toEqual(['200', '400 reporting_cycle'])
  }
})

test('two moves of one task are answered by the status that the other one left', async () => {
  for (const _ of rounds) {
    const { id } = await task(server)
    const [begun, done] = await Promise.all([move(server, id, 'in_progress'), move(server, id, 'done')])
    expect(outcomeOf(done)).toBe('200')
    expect((await server.ok(`/tasks/${id}`)).status).toBe('done')
    expect(['200', '409 invalid_task_transition']).toContain(outcomeOf(begun))
    if (begun.status !== 200) expect(begun.body.error.allowedValues).toEqual(['open'])
  }
})

test('equal mentions at once become one run', async () => {
  for (const _ of rounds) {
    const { id } = await server.createAgent()
    const wakes = Array.from({ length: 6 }, () => start(id, { source: 'mention', prompt: 'Look at this.' }))
    const replies = await Promise.all(wakes)
    expect(replies.map(outcomeOf)).toEqual(wakes.map(() => '200'))
    expect(await liveRuns({ agent_id: id })).toHaveLength(1)
  }
})

test('changes of different fields at once are all made', async () => {
  for (const _ of rounds) {
    const { id } = await server.createAgent()
    const changes = [{ description: 'Said at once.' }, { visibility: 'private' }, { name: `Renamed ${id}` }]
    const replies = await Promise.all(changes.map((change) => patch(id, change)))
    expect(replies.map(outcomeOf)).toEqual(['200', '200', '200'])
    expect(await server.ok(`/agents/${id}`)).toMatchObject(Object.assign({}, ...changes))
  }
})

test('agents of one name made at once get a handle each', async () => {
  for (const round of rounds) {
    const made = Array.from({ length: 4 }, () =>
      server.call('/agents', { body: { name: `Same ${round}`, harness: 'command', command: 'true' } }),
    )
    const replies = await Promise.all(made)
    expect(replies.map(outcomeOf)).toEqual(['201', '201', '201', '201'])
    expect(new Set(replies.map(({ body }) => body.handle)).size).toBe(4)
  }
})

test('a live page that is said to be live while it is published stays live, with the new words', async () => {
  for (const round of rounds) {
    const { id } = await server.ok('/wiki/pages', { body: { title: `Live ${round}`, body: 'Some words.' } })
    const [published, said] = await Promise.all([
      server.call(`/wiki/pages/${id}/revisions`, { body: { body: 'Some other words.' } }),
      server.call(`/wiki/pages/${id}`, { method: 'PATCH', body: { archived: false } }),
    ])
    expect([published, said].map(outcomeOf)).toEqual(['201', '200'])
    expect(await server.ok(`/wiki/pages/${id}`)).toMatchObject({ archivedAt: null, body: 'Some other words.' })
  }
})
