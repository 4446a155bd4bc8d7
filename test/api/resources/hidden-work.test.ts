import { afterAll, beforeAll, expect, test } from 'vitest'
import { codeOf, TestServer, type Person } from '../../kit/server.ts'
import { makeConversation, say } from '../../kit/talk.ts'
import { call, expectWakes, made, move, task, wakesAreAnswered } from './tasks-kit.ts'

// Tests what is told of tasks of private projects, and of the work of private agents, to who may not see them.

let server: TestServer
let member: Person
let secretProject: string
beforeAll(async () => {
  server = await TestServer.start()
  member = await server.addPerson('member')
  secretProject = (await server.ok('/projects', { body: { name: 'Secret', visibility: 'private' } })).id
})
afterAll(async () => server?.stop())

const promptsOf = async (agentId: string): Promise<string[]> => {
  const rows: { prompt: string }[] = await server.database.root('wakes').where({ agent_id: agentId }).orderBy('seq')
  return rows.map(({ prompt }) => prompt)
}

test('an agent that watches a task is told nothing more once the task moves into a project it may not see', async () => {
  const watcher = (await server.createAgent()).id
  const watched = await task(server, { title: 'Open at first', projectId: null })
  await made(server, `/tasks/${watched.id}/watchers`, { type: 'agent', id: watcher })
  await move(server, watched.id, 'in_progress')
  await move(server, watched.id, 'in_review')
  expect(await promptsOf(watcher)).toHaveLength(1)
  await made(server, `/tasks/${watched.id}`, { projectId: secretProject })
  await move(server, watched.id, 'done')
  expect(await promptsOf(watcher)).toHaveLength(1)
})

test('whoever waited for hidden tasks learns that nothing holds theirs up, and not what did', async () => {
  const agent = (await server.createAgent()).id
  const hidden = await task(server, { title: 'Buy the rival', projectId: secretProject })
  const waiting = await task(server, { assignee: agent, dependsOn: [hidden.id] })
  await wakesAreAnswered(server, waiting.id)
  const parent = await task(server, { assignee: agent })
  const part = await task(server, { title: 'Sack the board', projectId: secretProject, parentTaskId: parent.id })
  await move(server, hidden.id, 'done')
  await move(server, part.id, 'done')
  await expectWakes(server, waiting.id, ['dependency_resolved'])
  const told = (await promptsOf(agent)).join('\n')
  expect(told).toContain('Nothing blocks this task any more')
  expect(told).toContain('All subtasks of this task are finished')
  for (const secret of [hidden, part]) {
    expect(told).not.toContain(secret.title)
    expect(told).not.toContain(`${secret.key}:`)
  }
})

test('a hidden task is no place to page from', async () => {
  const hidden = await task(server, { projectId: secretProject })
  const token = member.token
  expect(codeOf(await server.call(`/tasks?startingAfter=${hidden.id}`, { token }))).toBe('invalid_cursor')
  expect((await server.call(`/tasks?startingAfter=${hidden.id}`)).status).toBe(200)
})

test('what a private agent does in a channel is shown to who sees the agent; others read what it says', async () => {
  const hidden = await server.createAgent({ visibility: 'private' })
  const open = await server.createAgent()
  const participants = [hidden.id, open.id]
  const { id } = await makeConversation(server, { kind: 'channel', title: 'All hands', participants })
  for (const agent of [open, hidden]) {
    await say(server, id, `@${agent.id} begin`)
    await server.plane.waker.idle()
    server.world.advance(1)
  }
  const agentsSeen = async (token: string): Promise<string[]> => {
    const { runs } = await server.ok(`/conversations/${id}/events`, { token })
    return (runs as { agent: { id: string } }[]).map((run) => run.agent.id)
  }
  await expect.poll(() => agentsSeen(server.owner.token)).toEqual([open.id, hidden.id])
  expect(await agentsSeen(member.token)).toEqual([open.id])
})

test('the history of a task names a private agent to nobody who does not see it', async () => {
  const hidden = await server.createAgent({ visibility: 'private' })
  const worked = await task(server, { assignee: hidden.id })
  await wakesAreAnswered(server, worked.id)
  const [run] = (await server.ok(`/runs?agent=${hidden.id}`)).data
  const token = await server.runToken(run.id)
  const headers = { 'Idempotency-Key': crypto.randomUUID() }
  await server.ok(`/tasks/${worked.id}/comments`, { body: { body: 'On it.' }, token, headers })
  await server.ok(`/tasks/${worked.id}/watchers`, { body: { type: 'agent', id: hidden.id } })
  for (const path of [`/tasks/${worked.id}/history`, `/tasks/${worked.id}/activity`]) {
    const own = JSON.stringify(await server.ok(path))
    expect([path, own.includes(hidden.id)]).toEqual([path, true])
    const theirs = await server.ok(path, { token: member.token })
    expect([path, JSON.stringify(theirs.data).includes(hidden.id)]).toEqual([path, false])
    expect(theirs.data).toHaveLength(JSON.parse(own).data.length - (path.endsWith('history') ? 1 : 0))
  }
})

test('a task that is opened again, or taken out of the archive, is begun at its scheduled start', async () => {
  const agent = (await server.createAgent()).id
  const startAt = () => new Date(server.world.now() + 3_600_000).toISOString()
  const [reopened, stored] = [
    await task(server, { assignee: agent, startAt: startAt() }),
    await task(server, { assignee: agent, startAt: startAt() }),
  ]
  await move(server, reopened.id, 'done')
  await move(server, reopened.id, 'open', { reason: 'Too early.' })
  await call(server, `/tasks/${stored.id}/archive`)
  await server.plane.waker.idle()
  expect(await promptsOf(agent)).toEqual([])
  server.world.advance(3_700_000)
  await expectWakes(server, reopened.id, ['assignment'])
  await call(server, `/tasks/${stored.id}/unarchive`)
  await expectWakes(server, stored.id, ['assignment'])
})
