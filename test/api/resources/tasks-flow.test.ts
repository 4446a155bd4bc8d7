import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { call, expectWakes, made, move, outcome, task, wakesAreAnswered, wakesOf } from './tasks-kit.ts'

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

const get = (id: string) => server.ok(`/tasks/${id}`)
const assign = (id: string, agentId: string | null) => call(server, `/tasks/${id}/assign`, { assignee: agentId })

/** Starts the next run on the person's own device, which lets runs of that person's agents start. */
async function worker(): Promise<{ person: Person; device: FakeDevice; agentId: string }> {
  const person = await server.addPerson('member')
  const device = await FakeDevice.connect(server, { token: person.token })
  const agent = await server.createAgent({}, person.token)
  return { person, device, agentId: agent.id }
}

describe('transitions', () => {
  const statuses = ['open', 'in_progress', 'in_review', 'done', 'cancelled'] as const
  /** How to get a new task to each status. */
  const ways: Record<(typeof statuses)[number], readonly string[]> = {
    open: [],
    in_progress: ['in_progress'],
    in_review: ['in_progress', 'in_review'],
    done: ['done'],
    cancelled: ['cancelled'],
  }
  /** Document 2, "States and transitions > Task". */
  const table: Record<(typeof statuses)[number], readonly string[]> = {
    open: ['in_progress', 'done', 'cancelled'],
    in_progress: ['in_review', 'done', 'open', 'cancelled'],
    in_review: ['in_progress', 'done', 'open', 'cancelled'],
    done: ['open'],
    cancelled: ['open'],
  }

  test.each(statuses.flatMap((from) => statuses.map((to) => [from, to] as const)))('%s to %s', async (from, to) => {
    const { id } = await task(server)
    for (const step of ways[from]) await move(server, id, step)
    const isReopening = from === 'done' || from === 'cancelled'
    if (!table[from].includes(to)) {
      const reply = await move(server, id, to, { reason: 'Because' })
      expect(outcomeOf(reply)).toBe('409 invalid_task_transition')
      expect(reply.body.error.allowedValues).toEqual(table[from])
      expect((await get(id)).status).toBe(from)
      return
    }
    if (isReopening) {
      for (const reason of [undefined, ' '])
        expect(outcomeOf(await move(server, id, to, { reason }))).toBe('400 reopen_reason_required')
    }
    const reply = await move(server, id, to, isReopening ? { reason: 'Not good yet' } : {})
    expect([reply.status, reply.body.status]).toEqual([200, to])
  })

  test('set and clear the times of a task', async () => {
    const { id } = await task(server)
    const started = (await move(server, id, 'in_progress')).body
    expect(started).toMatchObject({ startedAt: expect.any(String), completedAt: null })
    server.world.advance(1_000)
    await move(server, id, 'open')
    const again = (await move(server, id, 'in_progress')).body
    expect(again.startedAt).toBe(started.startedAt)
    const done = (await move(server, id, 'done')).body
    expect(done).toMatchObject({ completedAt: expect.any(String), cancelledAt: null })
    const open = (await move(server, id, 'open', { reason: 'x' })).body
    expect(open).toMatchObject({ completedAt: null, startedAt: started.startedAt })
    expect((await move(server, id, 'cancelled')).body.cancelledAt).toEqual(expect.any(String))
    expect((await move(server, id, 'open', { reason: 'x' })).body.cancelledAt).toBeNull()
  })

  test('of several at once one moves', async () => {
    const { id } = await task(server)
    const replies = await Promise.all(Array.from({ length: 4 }, () => move(server, id, 'done')))
    expect(replies.map(outcomeOf).toSorted()).toEqual([
      '200',
      ...Array.from({ length: 3 }, () => '409 invalid_task_transition'),
    ])
  })

  test('take a comment along, or none of both', async () => {
    const { id } = await task(server)
    expect(outcomeOf(await move(server, id, 'done', { comment: ' ' }))).toBe('400 empty_comment')
    const secret = `ghp_${'a1B2c3D4e5'.repeat(4)}`.slice(0, 40)
    expect(outcomeOf(await move(server, id, 'done', { comment: `Use ${secret}` }))).toBe('400 secret_in_message')
    expect((await get(id)).status).toBe('open')
    expect((await move(server, id, 'done', { comment: 'Merged.' })).body.status).toBe('done')
    const { data } = await server.ok(`/tasks/${id}/comments`)
    expect(data).toMatchObject([{ body: 'Merged.', author: { type: 'user' } }])
  })

  test('a comment that reopens also unarchives', async () => {
    const { id } = await task(server)
    await move(server, id, 'done')
    await made(server, `/tasks/${id}/archive`)
    await server.ok(`/tasks/${id}/comments`, { body: { content: 'It is back', reopen: true } })
    expect(await get(id)).toMatchObject({ status: 'open', archivedAt: null, completedAt: null })
    const { data } = await server.ok(`/tasks/${id}/activity`)
    expect(data.map((entry: { kind: string }) => entry.kind).slice(0, 2)).toEqual([
      'task.unarchived',
      'task.status_changed',
    ])
    expect(data[1].data).toEqual({ from: 'done', to: 'open', reason: 'It is back' })
  })
})

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

  test('of a task on which a run works waits for its end; a run that only waits gives way', async () => {
    const { device, agentId } = await worker()
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

describe('work on a task', () => {
  let device: FakeDevice
  let agentId: string
  let run: FakeRun
  let taskId: string
  beforeAll(async () => {
    ;({ device, agentId } = await worker())
    taskId = (await task(server, { title: 'Taken up', assignee: agentId })).id
    run = await device.take()
  })
  afterAll(() => device.disconnect())

  test('its start moves the task to in_progress and is told', async () => {
    expect(await get(taskId)).toMatchObject({ status: 'in_progress', startedAt: expect.any(String) })
    const { data } = await server.ok(`/tasks/${taskId}/activity`)
    expect(data.map((entry: { kind: string }) => entry.kind)).toEqual([
      'task.status_changed',
      'run.started',
      'task.created',
    ])
    expect(data[0].actor).toEqual({ type: 'agent', id: agentId })
  })

  test('`current` is the task of the run', async () => {
    const current = await server.ok('/tasks/current', { token: run.token })
    expect(current.id).toBe(taskId)
    expect((await server.ok('/tasks?ids=current', { token: run.token })).data[0].id).toBe(taskId)
    const done = await call(server, '/tasks/current/transition', { status: 'in_review' }, run.token)
    expect(done.body.status).toBe('in_review')
  })

  test('a second run of the task waits for the first', async () => {
    const other = await server.createAgent()
    const reply = await server.ok(`/agents/${other.id}/runs`, { body: { taskId, prompt: 'Look' } })
    expect(reply).toMatchObject({ kind: 'pending', gateReason: 'task_locked' })
    await server.ok(`/runs/${reply.runPublicId}/cancel`, { body: {} })
  })

  test('its end is told, and the history names run, comments and activity in order', async () => {
    await call(server, `/tasks/${taskId}/comments`, { content: 'Thank you' })
    await run.end()
    const { data } = await server.ok(`/tasks/${taskId}/activity?limit=1`)
    expect(data[0]).toMatchObject({ kind: 'run.ended', data: { runId: run.runId, exitReason: 'completed' } })
    const history = await server.ok(`/tasks/${taskId}/history`)
    const told = history.data.map((entry: { source: string; kind: string }) => `${entry.source} ${entry.kind}`)
    expect(told[0]).toBe('activity task.created')
    expect(told).toContain('run run.succeeded')
    expect(told).toContain('comment comment.posted')
    expect(told.filter((entry: string) => entry.startsWith('activity run.'))).toEqual([])
    const times = history.data.map((entry: { createdAt: string }) => entry.createdAt)
    expect(times).toEqual(times.toSorted())
    expect(history.hasMore).toBe(false)
    expect((await server.ok(`/tasks/${taskId}/history?limit=1`)).hasMore).toBe(true)
    for (const limit of [0, 501])
      expect(outcomeOf(await server.call(`/tasks/${taskId}/history?limit=${limit}`))).toBe('400 validation_error')
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

test('an open question blocks the task until it is answered, and the answer goes on with the work', async () => {
  const { device, agentId, person } = await worker()
  const one = await task(server, { assignee: agentId })
  const run = await device.take()
  const asked = await call(server, '/questions', { prompt: 'Red or green?' }, run.token)
  expect(asked.status).toBe(201)
  await expect.poll(async () => (await get(one.id)).conditions).toContainEqual({ type: 'blocked', reason: 'question' })
  const refused = await server.ok(`/agents/${agentId}/runs`, { body: { taskId: one.id }, token: person.token })
  expect(refused).toMatchObject({ kind: 'not_dispatched', reason: 'task_hitl_open', blockedBy: { kind: 'question' } })
  await run.end('question_asked')
  const { id } = asked.body.question
  const answered = await call(server, `/questions/${id}/answer`, { answer: { text: 'Green' } }, person.token)
  expect(answered.status).toBe(200)
  expect((await get(one.id)).conditions).not.toContainEqual({ type: 'blocked', reason: 'question' })
  await expectWakes(server, one.id, ['assignment', 'approval_resolved'])
  await device.disconnect()
})

test('an open approval blocks the task', async () => {
  const { device, agentId } = await worker()
  const one = await task(server, { assignee: agentId })
  const run = await device.take()
  const raised = await call(
    server,
    '/approvals',
    { trigger: 'connection_action', prompt: 'Deploy?', gatedThing: { name: 'deploy' } },
    run.token,
  )
  expect([raised.status, raised.status < 300 ? null : raised.body]).toEqual([201, null])
  await expect.poll(async () => (await get(one.id)).conditions).toContainEqual({ type: 'blocked', reason: 'approval' })
  await device.disconnect()
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
  const { device, agentId } = await worker()
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

test('an agent that calls from elsewhere is told what it may not', async () => {
  const { token } = await server.agentCaller()
  expect(outcomeOf(await server.call('/tasks/current', { token }))).toBe('404 task_not_found')
})
