import { idFrom } from '../../../shared/lib/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { makeDm, say } from '../../kit/talk.ts'
import { call, made, task, wakesAreAnswered } from './tasks-kit.ts'
import { makeWorkflow, settled, startFlow } from './workflows-kit.ts'

// Tests who sees what an agent of the whole company does in private: on tasks of private projects, and in a dm.

let server: TestServer
let worker: { id: string }
/** Owns the private project, and the agent, and nothing. */
let leader: Person, keeper: Person, stranger: Person
let projectId: string
beforeAll(async () => {
  server = await TestServer.start({ settings: { SVC_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64') } })
  leader = await server.addPerson('member')
  keeper = await server.addPerson('member')
  stranger = await server.addPerson('member')
  worker = await server.createAgent({}, keeper.token)
  const project = { name: 'Secret', visibility: 'private' }
  projectId = (await server.ok('/projects', { body: project, token: leader.token })).id
  await call(server, `/projects/${projectId}/grants`, { agentId: worker.id }, leader.token)
})
afterAll(async () => server?.stop())

/** Whether each way to read the run gives something of it. */
async function ways(runId: string, token: string): Promise<Record<string, boolean>> {
  const found = async (path: string) => (await server.call(path, { token })).status === 200
  const listed = async (path: string) => JSON.stringify(await server.ok(path, { token })).includes(runId)
  return {
    get: await found(`/runs/${runId}`),
    events: await found(`/runs/${runId}/events`),
    list: await listed('/runs'),
    ids: await listed(`/runs?ids=${runId}`),
    agent: await listed(`/runs?agent=${worker.id}`),
  }
}

const all = { get: true, events: true, list: true, ids: true, agent: true }
const none = { get: false, events: false, list: false, ids: false, agent: false }

async function runOf(taskId: string): Promise<string> {
  await wakesAreAnswered(server, taskId)
  return (await server.ok(`/runs?task=${taskId}`)).data[0].id
}

const otherAgent = async () => server.runToken(await server.startRun((await server.createAgent()).id))

test('a run on a task of a private project is read by who sees the project, the agent and its owner', async () => {
  const hidden = await task(server, { assignee: worker.id, projectId }, leader.token)
  const runId = await runOf(hidden.id)
  for (const token of [leader.token, keeper.token, server.owner.token, await server.runToken(idFrom(runId))])
    expect(await ways(runId, token)).toEqual(all)
  for (const token of [stranger.token, await otherAgent()]) expect(await ways(runId, token)).toEqual(none)
  await made(server, `/tasks/${hidden.id}`, { projectId: null }, leader.token)
  expect(await ways(runId, stranger.token)).toEqual(all)
})

test('a run of another agent on a hidden task is read by the agent that the task is assigned to', async () => {
  const hidden = await task(server, { assignee: worker.id, projectId }, leader.token)
  const runId = await runOf(hidden.id)
  const next = await server.createAgent()
  const reader = await server.runToken(await server.startRun(next.id))
  expect(await ways(runId, reader)).toEqual(none)
  await call(server, `/projects/${projectId}/grants`, { agentId: next.id }, leader.token)
  expect(await ways(runId, reader)).toEqual(all)
})

test('what such a run asks and notes is hidden with it, but from the person who decides', async () => {
  const hidden = await task(server, { assignee: worker.id, projectId }, leader.token)
  const agent = await server.runToken(idFrom(await runOf(hidden.id)))
  const learning = await made(
    server,
    '/learnings',
    { topic: 'Secret', bullets: [{ text: 'The plan.', sources: ['https://example.com'] }] },
    agent,
  )
  const change = await call(server, '/agents', { name: 'Helper', harness: 'command', command: 'true' }, agent)
  const { question } = await made(server, '/questions', { prompt: 'Buy the rival?' }, agent)
  const approval = change.body.approvalId
  const paths = [`/questions/${question.id}`, `/learnings/${learning.id}`, `/approvals/${approval}`]
  const statuses = async (token: string) =>
    Promise.all(paths.map(async (path) => (await server.call(path, { token })).status))
  const listed = async (token: string) => {
    const lists = ['/questions', '/learnings', '/approvals'].map((path) => server.ok(path, { token }))
    const texts = (await Promise.all(lists)).map((list) => JSON.stringify(list))
    return [question.id, learning.id, approval].map((id, i) => texts[i]!.includes(id))
  }
  for (const { token } of [leader, keeper, server.owner]) {
    expect(await statuses(token)).toEqual([200, 200, 200])
    expect(await listed(token)).toEqual([true, true, true])
  }
  expect(await statuses(stranger.token)).toEqual([404, 404, 404])
  expect(await listed(stranger.token)).toEqual([false, false, false])
  const answer = await call(server, `/questions/${question.id}/answer`, { answer: { text: 'No.' } }, stranger.token)
  expect(outcomeOf(answer)).toBe('404 question_not_found')
})

test('a run that answers in a dm is read by who writes there, and by the agent and its owner', async () => {
  const { id } = await makeDm(server, worker.id, leader.token)
  await say(server, id, 'Between us.', leader.token)
  const runs = async () => (await server.ok(`/conversations/${id}/events`, { token: leader.token })).runs
  await expect.poll(async () => (await runs()).length).toBe(1)
  const runId = (await runs())[0].id
  for (const token of [leader.token, keeper.token, server.owner.token, await server.runToken(runId)])
    expect(await ways(runId, token)).toEqual(all)
  for (const token of [stranger.token, await otherAgent()]) expect(await ways(runId, token)).toEqual(none)
})

test('a workflow run on a hidden task is shown to who sees the task, and to who started it without its steps', async () => {
  const body = `return agent('Work on it.', { agent: '${worker.id}' })`
  const moved = await task(server)
  const id = await startFlow(server, await makeWorkflow(server, body), { taskId: moved.key }, stranger.token)
  await settled(server)
  const stepRun = async (token: string) => (await server.ok(`/workflows/runs/${id}`, { token })).steps[0].run
  const run = await stepRun(stranger.token)
  expect(run).toMatchObject({ status: 'queued' })
  await call(server, `/tasks/${moved.id}`, { projectId }, server.owner.token)
  const listed = async (token: string) => JSON.stringify(await server.ok('/workflows/runs', { token })).includes(id)
  for (const { token } of [leader, server.owner]) {
    expect(await listed(token)).toBe(true)
    expect(await stepRun(token)).toEqual(run)
  }
  expect(await listed(stranger.token)).toBe(true)
  expect(await stepRun(stranger.token)).toBeNull()
  for (const token of [(await server.addPerson('member')).token, await otherAgent()]) {
    expect(outcomeOf(await server.call(`/workflows/runs/${id}`, { token }))).toBe('404 resource_not_found')
    expect(await listed(token)).toBe(false)
  }
})

test('the history of a task names no task of a private project to who does not see that', async () => {
  const open = await task(server, {}, leader.token)
  const hidden = await task(server, { projectId }, leader.token)
  await call(server, `/tasks/${open.id}/dependencies`, { dependsOnTaskId: hidden.id }, leader.token)
  await call(server, `/tasks/${open.id}/move`, { parentTaskId: hidden.id }, leader.token)
  await call(server, `/tasks/${open.id}/dependencies/${hidden.id}/remove`, {}, leader.token)
  for (const path of ['history', 'activity']) {
    const read = async (token: string) => JSON.stringify(await server.ok(`/tasks/${open.id}/${path}`, { token }))
    const [seen, unseen] = [await read(leader.token), await read(stranger.token)]
    for (const kind of ['dependency.added', 'dependency.removed', 'task.moved']) {
      expect(seen).toContain(kind)
      expect(unseen).toContain(kind)
    }
    for (const name of [hidden.id, hidden.key]) {
      expect(seen).toContain(`"${name}"`)
      expect(unseen).not.toContain(`"${name}"`)
    }
  }
})

test('a list of secrets names no private agent to others', async () => {
  const agent = await server.createAgent({ visibility: 'private' }, keeper.token)
  const secret = await server.ok('/secrets', {
    body: { name: 'Deploy', value: 'v', agentId: agent.id },
    token: keeper.token,
  })
  const given = async (token: string) =>
    (await server.ok('/secrets', { token })).data.find(({ id }: { id: string }) => id === secret.id).grantedTo
  expect(secret.grantedTo).toEqual([{ type: 'agent', id: agent.id }])
  for (const token of [keeper.token, server.owner.token]) expect(await given(token)).toEqual(secret.grantedTo)
  expect(await given(stranger.token)).toEqual([])
})
