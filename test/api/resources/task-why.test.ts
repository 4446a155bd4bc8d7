import { afterAll, beforeAll, expect, test } from 'vitest'
import { FakeDevice } from '../../kit/fake-device.ts'
import { TestServer, type Person } from '../../kit/server.ts'
import { seedFlow } from '../../store/workflow-rows.ts'
import { made, move, task, wakesAreAnswered } from './tasks-kit.ts'

// What holds a task: by the rules by which its agent is woken, its run, and what people are asked.

let server: TestServer
let device: FakeDevice
let agent: { id: string; handle: string }
beforeAll(async () => {
  server = await TestServer.start()
  device = await FakeDevice.connect(server)
  agent = await server.createAgent()
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
})

const whyOf = (id: string, token?: string) => server.ok(`/tasks/${id}/why`, token === undefined ? {} : { token })
const setStatus = (id: string, status: string) => server.ok(`/agents/${id}`, { method: 'PATCH', body: { status } })
/** An agent that assignments do not wake. */
async function quietAgent(body: Record<string, unknown> = {}) {
  const made = await server.createAgent({ wakeOnAssignment: false, ...body })
  return { ...made, at: made.handle.startsWith('@') ? made.handle : `@${made.handle}` }
}

test('a task of nobody, by its key and its id', async () => {
  const { id, key } = await task(server)
  const why = await whyOf(key)
  expect(why).toMatchObject({
    object: 'why',
    task: { id, key },
    state: 'waits',
    reason: 'unassigned',
    command: `svc task assign ${key} --assignee "..."`,
    run: null,
    blockedBy: [],
    moreBlockers: 0,
  })
  expect(await whyOf(id)).toEqual(why)
})

test('a task whose run waits, works, asks and has failed', async () => {
  const { id } = await task(server, { assignee: agent.id })
  await wakesAreAnswered(server, id)
  const {
    data: [{ id: runId }],
  } = await server.ok(`/runs?task=${id}`)
  const ofRun = await server.ok(`/runs/${runId}/why`)
  const waits = await whyOf(id)
  expect(waits).toMatchObject({ state: 'waits', reason: ofRun.reason, run: runId, command: ofRun.command })
  expect(waits.because).toBe(`Its run ${runId}: ${ofRun.because}`)
  const run = await device.take()
  expect(await whyOf(id)).toMatchObject({ state: 'works', run: runId, command: `svc run watch ${runId}` })
  const { question } = await made(server, '/questions', { prompt: 'Which region?' }, run.token)
  const asks = { state: 'asks', reason: 'question', because: 'It waits for a person: Which region?' }
  expect(await whyOf(id)).toMatchObject({ ...asks, command: `svc question answer ${question.id} "..."` })
  await run.end('question_asked')
  expect(await whyOf(id)).toMatchObject(asks)
})

test('a task whose last run has failed says so, and how it is tried again', async () => {
  const { id } = await task(server, { assignee: agent.id })
  const run = await device.take()
  await run.end('error', { message: 'It broke.' })
  const why = await whyOf(id)
  expect(why).toMatchObject({ state: 'waits', reason: 'error', run: run.runId, command: `svc run retry ${run.runId}` })
  expect(why.because).toBe(`Nobody works on it. Its last run ${run.runId}: It broke.`)
})

test('a task that others block names them, of hundreds the first ten, and none that the reader does not see', async () => {
  const { at, id: quiet } = await quietAgent()
  const hiddenProject = await made(server, '/projects', { name: 'Hidden', visibility: 'private' })
  const blockers = [await task(server), await task(server, { projectId: hiddenProject.id })]
  for (let each = 0; each < 12; each++) blockers.push(await task(server))
  const { id } = await task(server, { assignee: quiet, dependsOn: blockers.map((blocker) => blocker.id) })
  const owners = await whyOf(id)
  const [first, second, third] = owners.blockedBy.map(({ key }: { key: string }) => `${key} (open)`)
  expect(owners).toMatchObject({ state: 'waits', reason: 'task_blocked_dependency', moreBlockers: 4 })
  expect(owners.because).toBe(`It waits for tasks that are not finished: ${first}, ${second}, ${third}, 11 more.`)
  expect(owners.command).toBe(`svc why ${owners.blockedBy[0].key}`)
  const reader: Person = await server.addPerson('member')
  const readers = await whyOf(id, reader.token)
  expect(JSON.stringify(readers)).not.toContain(blockers[1].id)
  expect(readers.because).not.toContain(blockers[1].key)
  expect([readers.blockedBy.length, readers.moreBlockers]).toEqual([10, 4])
  for (const blocker of blockers) if (blocker !== blockers[1]) await move(server, blocker.id, 'done')
  const last = await whyOf(id, reader.token)
  expect(last).toMatchObject({ command: null, since: null, blockedBy: [], moreBlockers: 1 })
  expect(last.because).toBe('It waits for tasks that are not finished: 1 that you do not see.')
  await move(server, blockers[1].id, 'done')
  expect(at).toMatch(/^@/)
  expect((await whyOf(id)).reason).not.toBe('task_blocked_dependency')
})

test('what would refuse a wake is said by the rules that refuse it, with the command that mends it', async () => {
  const { at, id: quiet } = await quietAgent()
  const { id, key } = await task(server, { assignee: quiet })
  const wake = `svc agent run ${at} --task-id ${key}`
  expect(await whyOf(id)).toMatchObject({ reason: 'wake_on_assignment_off', command: wake })
  const refusedAs = async () => {
    const reply = await server.ok(`/agents/${quiet}/runs`, { body: { taskId: id } })
    const why = await whyOf(id)
    expect([why.reason, why.because]).toEqual([reply.reason, reply.message])
    return [why.reason, why.command]
  }
  await setStatus(quiet, 'running')
  expect(await refusedAs()).toEqual(['agent_inactive', `svc agent update ${at} --status active`])
  await setStatus(quiet, 'active')
  const workspace = server.owner.workspaceId
  await made(server, `/workspaces/${workspace}/pause-agents`, {})
  expect(await refusedAs()).toEqual(['workspace_agents_paused', 'svc workspace resume-agents'])
  await made(server, `/workspaces/${workspace}/resume-agents`, {})
  await server.database.root('agents').where({ id: quiet }).update({ monthly_budget_cents: 0 })
  expect(await refusedAs()).toEqual(['budget_blocked', `svc agent config set ${at} --monthly-budget-cents "..."`])
  const { nextAt } = await whyOf(id)
  expect(nextAt).toMatch(/-01T00:00:00/)
  expect(Date.parse(nextAt)).toBeGreaterThan(server.world.now())
  await setStatus(quiet, 'terminated')
  expect(await refusedAs()).toEqual(['agent_inactive', `svc task assign ${key} --assignee "..."`])
})

test('a task that is to begin later, is reviewed, and is over', async () => {
  const { id: quiet } = await quietAgent()
  const startAt = new Date(server.world.now() + 3_600_000).toISOString()
  const { id, key } = await task(server, { assignee: quiet, startAt })
  const later = await whyOf(id)
  expect(later).toMatchObject({ reason: 'task_not_started', command: `svc task update ${key} --start-at none` })
  expect(Date.parse(later.nextAt)).toBe(Date.parse(startAt))
  await move(server, id, 'in_progress')
  await move(server, id, 'in_review')
  expect(await whyOf(id)).toMatchObject({ reason: 'in_review', command: `svc task transition ${key} --status done` })
  await move(server, id, 'done')
  const done = { state: 'ended', reason: 'done', because: 'It is done.', nextAt: null }
  expect(await whyOf(id)).toMatchObject({ ...done, command: `svc task transition ${key} --status open --reason "..."` })
  await made(server, `/tasks/${id}/archive`, {})
  expect(await whyOf(id)).toMatchObject({
    because: 'It is done, and in the archive.',
    command: `svc task unarchive ${key}`,
  })
})

test('a task that a workflow works on, between two steps and stalled', async () => {
  const { id: quiet } = await quietAgent()
  const { id } = await task(server, { assignee: quiet })
  const row = await server.database.root('tasks').where({ id }).first('workspace_id')
  const flow = await seedFlow(server.database.root, row.workspace_id, { taskId: id })
  const command = `svc workflow runs watch ${flow.id}`
  expect(await whyOf(id)).toMatchObject({ state: 'waits', reason: 'workflow_running', command })
  await server.database.root('workflow_runs').where({ id: flow.id }).update({ status: 'stalled' })
  expect(await whyOf(id)).toMatchObject({
    reason: 'workflow_stalled',
    because: `Its workflow run ${flow.id} is stalled.`,
  })
  await server.database.root('workflow_runs').where({ id: flow.id }).update({ completed_at: server.world.now() })
})

test('a reader who does not see the agent or its run is told neither', async () => {
  const hidden = await quietAgent({ visibility: 'private' })
  const { id } = await task(server, { assignee: hidden.id })
  const reader: Person = await server.addPerson('member')
  await setStatus(hidden.id, 'running')
  const unseen = await whyOf(id, reader.token)
  expect(unseen).toMatchObject({ reason: null, command: null })
  expect(unseen.because).toBe('It is assigned to an agent that you do not see.')
  await setStatus(hidden.id, 'active')
  const run = await server.startRun(hidden.id, { taskId: id })
  expect(JSON.stringify(await whyOf(id, reader.token))).not.toContain(run)
  expect(await whyOf(id)).toMatchObject({ run })
  await (await device.take()).end()
})
