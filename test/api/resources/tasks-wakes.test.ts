import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { call, expectWakes, made, move, outcome, task, wakesAreAnswered, wakesOf, worker } from './tasks-kit.ts'

// Tests who is woken by what happens to a task, and when.

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

const get = (id: string) => server.ok(`/tasks/${id}`)
const assign = (id: string, agentId: string | null) => call(server, `/tasks/${id}/assign`, { assignee: agentId })

describe('assignment', () => {
  test('wakes the agent with the task, once', async () => {
    const agent = await server.createAgent()
    const one = await task(server, { title: 'Paint the fence', description: 'In green', assignee: agent.id })
    await expectWakes(server, one.id, ['assignment'])
    const { data } = await server.ok(`/runs?task=${one.key}`)
    expect(data[0]).toMatchObject({ agent: { id: agent.id }, task: { id: one.key, title: 'Paint the fence' } })
    const { prompt } = await server.ok(`/runs/${data[0].id}/context`)
    for (const text of ['Paint the fence', 'In green', one.key]) expect(prompt).toContain(text)
    // The same agent again changes nothing.
    expect((await assign(one.id, agent.id)).status).toBe(200)
    await expectWakes(server, one.id, ['assignment'])
  })

  test('takes all forms of its body', async () => {
    const agent = await server.createAgent({ name: 'Form Taker' })
    const one = await task(server)
    const to = async (body: unknown) => (await made(server, `/tasks/${one.id}/assign`, body)).assignee?.id ?? null
    expect(await to({ assignee: { type: 'agent', id: agent.id } })).toBe(agent.id)
    expect(await to({ assignee: null })).toBeNull()
    expect(await to({ type: 'agent', id: '@form-taker' })).toBe(agent.id)
    expect(await to(null)).toBeNull()
    expect(await to({ assignee: 'Form Taker' })).toBe(agent.id)
    for (const body of [{}, { assignee: { type: 'user', id: 'usr_1' } }, []])
      expect(await outcome(call(server, `/tasks/${one.id}/assign`, body))).toBe('400 validation_error')
  })

  test('does not wake an agent that is not to be woken so', async () => {
    const agent = await server.createAgent()
    await server.ok(`/agents/${agent.id}/config`, {
      method: 'PUT',
      body: { config: { runtime: { triggers: { wakeOnAssignment: false } } } },
    })
    const [quiet, loud] = [await task(server), await task(server)]
    await assign(quiet.id, agent.id)
    // Wakes are made in their order: once a later one is a run, the earlier one would be, too.
    await assign(loud.id, (await server.createAgent()).id)
    await expectWakes(server, loud.id, ['assignment'])
    expect(await wakesOf(server, quiet.id)).toEqual([])
  })

  test('is refused for what is archived, unknown, or not for the agent', async () => {
    const agent = await server.createAgent()
    const gone = await server.createAgent()
    await server.ok(`/agents/${gone.id}`, { method: 'DELETE' })
    const one = await task(server)
    for (const id of ['@nobody', gone.id]) expect(outcomeOf(await assign(one.id, id))).toBe('404 assignee_not_found')
    const project = await server.ok('/projects', { body: { name: 'Hidden', visibility: 'private' } })
    const hidden = await task(server, { projectId: project.id })
    expect(outcomeOf(await assign(hidden.id, agent.id))).toBe('403 assignee_lacks_access')
    await made(server, `/tasks/${one.id}/archive`)
    expect(outcomeOf(await assign(one.id, agent.id))).toBe('409 task_archived')
  })

  test('what is archived is taken from its agent, and stays archived', async () => {
    const agent = await server.createAgent()
    const one = await task(server, { assignee: agent.id })
    await made(server, `/tasks/${one.id}/archive`)
    expect(outcomeOf(await assign(one.id, agent.id))).toBe('409 task_archived')
    const reply = await assign(one.id, null)
    expect(outcomeOf(reply)).toBe('200')
    expect(reply.body).toMatchObject({ assignee: null, archivedAt: expect.any(String) as string })
  })

  test('of a task on which a run works waits for its end; a run that only waits gives way', async () => {
    const { device, agentId } = await worker(server)
    const other = await server.createAgent()
    const one = await task(server, { assignee: agentId })
    const run = await device.take()
    expect((await get(one.id)).conditions).toEqual([{ type: 'active_run' }])
    const reply = await assign(one.id, other.id)
    expect(outcomeOf(reply)).toBe('409 task_has_active_run')
    expect(reply.body.error.details.runId).toBe(run.runId)
    expect(outcomeOf(await assign(one.id, null))).toBe('409 task_has_active_run')
    await run.end()
    expect((await get(one.id)).conditions).toEqual([])
    expect((await assign(one.id, other.id)).body.assignee.id).toBe(other.id)
    await expectWakes(server, one.id, ['assignment', 'assignment'])
    await assign(one.id, null)
    const { data } = await server.ok(`/runs?task=${one.id}&agent=${other.id}`)
    expect((await server.ok(`/runs/${data[0].id}`)).exitReason).toBe('duplicate_trigger')
    await device.disconnect()
  })

  test('by the run that works on the task: the other agent begins as soon as that run has ended', async () => {
    const { device, agentId } = await worker(server)
    const other = await worker(server)
    const one = await task(server, { assignee: agentId })
    const run = await device.take()
    const elsewhere = await task(server, { assignee: other.agentId })
    const stranger = await other.device.take()
    const handOn = (id: string, token: string) =>
      call(server, `/tasks/${id}/assign`, { assignee: other.agentId }, token)
    // Only its own, and only by that very run.
    expect(outcomeOf(await handOn(one.id, stranger.token))).toBe('409 task_has_active_run')
    expect(outcomeOf(await call(server, `/tasks/${elsewhere.id}/assign`, { assignee: agentId }, run.token))).toBe(
      '409 task_has_active_run',
    )
    await stranger.end()
    const given = await handOn(one.id, run.token)
    expect(given.body).toMatchObject({ assignee: { id: other.agentId }, conditions: [{ type: 'active_run' }] })
    await expectWakes(server, one.id, ['assignment', 'assignment'])
    const { data } = await server.ok(`/runs?task=${one.id}&agent=${other.agentId}`)
    expect(data[0]).toMatchObject({ status: 'queued', gateReason: 'task_locked' })
    await run.end()
    // On another device, which nothing but the end of that run tells of it.
    const next = await other.device.take()
    expect(next.runId).toBe(data[0].id)
    await next.end()
    await other.device.disconnect()
    await device.disconnect()
  })

  test('ends with the agent: its open tasks are named and are nobody’s', async () => {
    const agent = await server.createAgent()
    const [open, done] = [await task(server, { assignee: agent.id }), await task(server, { assignee: agent.id })]
    await move(server, done.id, 'done')
    const { unassignedTasks } = await server.ok(`/agents/${agent.id}`, { method: 'DELETE' })
    expect(unassignedTasks).toEqual([{ id: open.id, key: open.key, title: open.title }])
    expect((await get(open.id)).assignee).toBeNull()
    expect((await get(done.id)).assignee).toEqual({ type: 'agent', id: agent.id })
  })
})

describe('wakes that follow', () => {
  test('the last subtask closing wakes who has the parent', async () => {
    const agent = await server.createAgent()
    const parent = await task(server, { assignee: agent.id })
    await expectWakes(server, parent.id, ['assignment'])
    const [a, b] = [await task(server, { parentTaskId: parent.id }), await task(server, { parentTaskId: parent.id })]
    await move(server, a.id, 'done')
    await move(server, b.id, 'cancelled')
    await expectWakes(server, parent.id, ['assignment', 'fan_in'])
    // Opened and closed again, it is the last one once more.
    await move(server, b.id, 'open', { reason: 'x' })
    await move(server, b.id, 'done')
    await expectWakes(server, parent.id, ['assignment', 'fan_in', 'fan_in'])
  })

  test('a task that waits is refused a run, and its assignee is woken when its last blocker is gone', async () => {
    const agent = await server.createAgent()
    const [a, b] = [await task(server), await task(server)]
    const blocked = await task(server, { assignee: agent.id, dependsOn: [a.key, b.id] })
    expect(blocked.conditions).toEqual([{ type: 'blocked', reason: 'dependency' }])
    await wakesAreAnswered(server, blocked.id)
    const refused = await server.ok(`/agents/${agent.id}/runs`, { body: { taskId: blocked.id } })
    expect(refused).toMatchObject({ kind: 'not_dispatched', reason: 'task_blocked_dependency' })
    await move(server, a.id, 'done')
    expect((await get(blocked.id)).conditions).toHaveLength(1)
    await move(server, b.id, 'done')
    expect((await get(blocked.id)).conditions).toEqual([])
    await expectWakes(server, blocked.id, ['dependency_resolved'])
  })

  test('a blocker that is taken away wakes as well', async () => {
    const agent = await server.createAgent()
    const blocker = await task(server)
    const blocked = await task(server, { assignee: agent.id, dependsOn: [blocker.id] })
    await wakesAreAnswered(server, blocked.id)
    await made(server, `/tasks/${blocked.id}/dependencies/${blocker.key}/remove`)
    await expectWakes(server, blocked.id, ['dependency_resolved'])
  })

  test('an agent that watches is woken by a change of status made by others', async () => {
    const watcher = await server.createAgent()
    const one = await task(server)
    await made(server, `/tasks/${one.id}/watchers`, { type: 'agent', id: watcher.id })
    await move(server, one.id, 'in_progress')
    await move(server, one.id, 'in_review')
    const sources = async () =>
      (await server.ok(`/runs?agent=${watcher.id}`)).data.map((run: { triggerSource: string }) => run.triggerSource)
    await expect.poll(sources).toEqual(['task_watched'])
  })

  test('reopening wakes the assignee again', async () => {
    const agent = await server.createAgent()
    const one = await task(server, { assignee: agent.id })
    await expectWakes(server, one.id, ['assignment'])
    await move(server, one.id, 'done')
    await move(server, one.id, 'open', { reason: 'The colour is wrong' })
    await expectWakes(server, one.id, ['assignment', 'assignment'])
    const { data } = await server.ok(`/runs?task=${one.id}`)
    // The first one had not begun when the task was done.
    expect((await server.ok(`/runs/${data[1].id}`)).exitReason).toBe('duplicate_trigger')
    expect((await server.ok(`/runs/${data[0].id}/context`)).prompt).toContain('The colour is wrong')
  })
})

describe('scheduled starts', () => {
  const hour = 3_600_000
  const inAnHour = () => new Date(server.world.now() + hour).toISOString()
  const sweep = () => server.plane.sweeper.runAll()

  test('wake at their time, once', async () => {
    const agent = await server.createAgent()
    const startAt = inAnHour()
    const one = await task(server, { assignee: agent.id, startAt })
    expect(one.conditions).toEqual([{ type: 'scheduled', startAt }])
    const early = await server.ok(`/agents/${agent.id}/runs`, { body: { taskId: one.id } })
    expect(early).toMatchObject({ kind: 'not_dispatched', reason: 'task_not_started' })
    await sweep()
    expect(await wakesOf(server, one.id)).toEqual([])
    server.world.advance(hour + 1)
    expect((await get(one.id)).conditions).toEqual([])
    await sweep()
    await sweep()
    await expectWakes(server, one.id, ['assignment'])
  })

  test('hold up no work that has begun already, by hand or before the time was set', async () => {
    const agent = await server.createAgent()
    const one = await task(server, { assignee: agent.id, startAt: inAnHour() })
    expect((await move(server, one.id, 'in_progress')).body.conditions).toEqual([])
    const later = new Date(server.world.now() + 2 * hour).toISOString()
    const update = { method: 'POST', body: { startAt: later } }
    expect((await server.ok(`/tasks/${one.id}`, update)).conditions).toEqual([])
    await made(server, `/tasks/${one.id}/comments`, { content: 'Go on, please' })
    await expectWakes(server, one.id, ['channel_message'])
  })

  test('follow the task: moved, taken back, given to nobody, finished', async () => {
    const agent = await server.createAgent()
    const [now, nobody, done, moved] = await Promise.all(
      [1, 2, 3, 4].map(() => task(server, { assignee: agent.id, startAt: inAnHour() })),
    )
    const update = (id: string, startAt: string | null) =>
      server.call(`/tasks/${id}`, { method: 'POST', body: { startAt } })
    await update(now.id, null)
    await expectWakes(server, now.id, ['assignment'])
    await assign(nobody.id, null)
    await move(server, done.id, 'done')
    await update(moved.id, new Date(server.world.now() + 3 * hour).toISOString())
    server.world.advance(hour + 1)
    await sweep()
    server.world.advance(2 * hour)
    await sweep()
    await expectWakes(server, moved.id, ['assignment'])
    expect(await wakesOf(server, nobody.id)).toEqual([])
    expect(await wakesOf(server, done.id)).toEqual([])
  })
})

test('an agent that delegates is woken where it works when the other is done', async () => {
  const { device, agentId } = await worker(server)
  const helper = await server.createAgent()
  const own = await task(server, { assignee: agentId })
  const run = await device.take()
  const given = await task(server, { assignee: helper.id }, run.token)
  const { data } = await server.ok(`/tasks/${given.id}/watchers`)
  expect(data).toMatchObject([{ subject: { type: 'agent', id: agentId }, addedBy: 'auto', origin: own.id }])
  await run.end()
  await move(server, given.id, 'done')
  await expectWakes(server, own.id, ['assignment', 'task_watched'])
  await device.disconnect()
})
