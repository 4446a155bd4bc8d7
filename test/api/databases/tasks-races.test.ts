import { afterAll, beforeAll, expect, test } from 'vitest'
import { hasPostgres } from '../../kit/database.ts'
import { repeats } from '../../kit/forms.ts'
import { TestServer, type Reply } from '../../kit/server.ts'
import { keyed, makeConversation, say, tryPost } from '../../kit/talk.ts'
import { call, made, move, task } from '../resources/tasks-kit.ts'

// Requests about tasks and conversations that meet in the database.

let server: TestServer
let agentId: string
beforeAll(async () => {
  server = await TestServer.start({ database: hasPostgres() ? 'postgres' : 'sqlite' })
  agentId = (await server.createAgent()).id
})
afterAll(async () => server?.stop())

const rounds = repeats('RACE_ROUNDS', { short: 3, long: 10 })
const wakesFor = async (taskId: string, source: string): Promise<number> =>
  (await server.database.root('wakes').where({ task_id: taskId, trigger_source: source })).length
const troubles = (replies: readonly Reply[]) =>
  replies.filter(({ status }) => status >= 500).map(({ body }) => (body as { error: unknown }).error)

test('the last two subtasks finished at once wake whoever has the parent, once', async () => {
  for (let round = 0; round < rounds; round++) {
    const parent = await task(server, { assignee: agentId })
    const parts = await Promise.all([1, 2, 3].map(() => task(server, { parentTaskId: parent.id })))
    const replies = await Promise.all(parts.map((part) => move(server, part.id, 'done')))
    expect(troubles(replies)).toEqual([])
    expect(await wakesFor(parent.id, 'fan_in')).toBe(1)
  }
})

test('the last two blockers gone at once, finished or taken off, wake whoever has the task', async () => {
  for (let round = 0; round < rounds; round++) {
    const blockers = await Promise.all([1, 2, 3].map(() => task(server)))
    const blocked = await task(server, { assignee: agentId, dependsOn: blockers.map(({ id }) => id) })
    const [one, two, three] = blockers
    const replies = await Promise.all([
      move(server, one.id, 'done'),
      move(server, two.id, 'cancelled'),
      call(server, `/tasks/${blocked.id}/dependencies/${three.id}/remove`, {}),
    ])
    expect(troubles(replies)).toEqual([])
    expect(await wakesFor(blocked.id, 'dependency_resolved')).toBe(1)
  }
})

test('moves, links, comments and turns of one task do not hold each other up for good', async () => {
  for (let round = 0; round < rounds; round++) {
    const watcher = (await server.createAgent()).id
    const one = await task(server, { assignee: agentId })
    const other = await task(server)
    await made(server, `/tasks/${one.id}/comments`, { content: 'Begin.' })
    await made(server, `/tasks/${one.id}/watchers`, { type: 'agent', id: watcher })
    const replies = await Promise.all([
      move(server, one.id, 'in_progress', { comment: 'Seen.' }),
      call(server, `/tasks/${one.id}/dependencies`, { dependsOnTaskId: other.id }),
      call(server, `/tasks/${one.id}/comments`, { content: 'Another word.' }),
      call(server, `/tasks/${one.id}/move`, { parentTaskId: other.id }),
      call(server, `/tasks/${one.id}`, { priority: 'high' }),
      move(server, other.id, 'done', { comment: 'Over.' }),
    ])
    expect(troubles(replies)).toEqual([])
  }
})

test('a channel deleted while it is talked in answers everybody', async () => {
  for (let round = 0; round < rounds; round++) {
    const { id } = await makeConversation(server, { kind: 'channel', title: 'Passing' })
    const first = await say(server, id, 'First.')
    const person = await server.addPerson('member')
    const replies = await Promise.all([
      tryPost(server, id, { body: 'Second.' }),
      server.call(`/messages/${first.id}`, { body: { body: 'Changed.' } }),
      server.call(`/conversations/${id}/delete`, { method: 'POST', headers: keyed() }),
      server.call(`/conversations/${id}/participants`, { body: { id: person.userId }, headers: keyed() }),
      server.call(`/conversations/${id}/read`, { method: 'POST' }),
      server.call(`/messages/${first.id}/delete`, { method: 'POST', headers: keyed() }),
      tryPost(server, id, { body: 'Third.' }),
    ])
    expect(troubles(replies)).toEqual([])
  }
})

test('agents paused while they are talked to in a channel hold nobody up for good', async () => {
  const agents: { id: string }[] = []
  for (let n = 0; n < 6; n++) agents.push(await server.createAgent())
  const { id } = await makeConversation(server, {
    kind: 'channel',
    title: 'Busy',
    participants: agents.map((agent) => agent.id),
  })
  const workspace = `/workspaces/${server.owner.workspaceId}`
  for (let round = 0; round < rounds; round++) {
    await say(server, id, `@${agents[0]!.id} @${agents[1]!.id} @${agents[2]!.id} begin`)
    await server.plane.waker.idle()
    const replies = await Promise.all([
      call(server, `${workspace}/pause-agents`),
      tryPost(server, id, { body: `@${agents[3]!.id} and you` }),
      server.call(`/conversations/${id}/send`, {
        body: { body: 'You, too.', agentId: agents[4]!.id },
        headers: { accept: 'application/json' },
      }),
      server.call(`/conversations/${id}/send`, {
        body: { body: 'Or you.', agentId: agents[5]!.id },
        headers: { accept: 'application/json' },
      }),
    ])
    expect(troubles(replies)).toEqual([])
    expect((await call(server, `${workspace}/resume-agents`)).status).toBe(200)
  }
})
