import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FakeDevice, FakeRun } from '../../kit/fake-device.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { call, expectWakes, made, move, task, worker } from './tasks-kit.ts'

// Tests how the status of a task moves: by hand, by the run that works on it, and what blocks it.

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

const get = (id: string) => server.ok(`/tasks/${id}`)

describe('transitions', () => {
  const statuses = ['open', 'in_progress', 'in_review', 'done', 'cancelled'] as const
  /** Says how to get a new task to each status. */
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

describe('work on a task', () => {
  let device: FakeDevice
  let agentId: string
  let run: FakeRun
  let taskId: string
  beforeAll(async () => {
    ;({ device, agentId } = await worker(server))
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

test('an open question blocks the task until it is answered, and the answer goes on with the work', async () => {
  const { device, agentId, person } = await worker(server)
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
  const { device, agentId } = await worker(server)
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

test('an agent that calls from elsewhere is told what it may not', async () => {
  const { token } = await server.agentCaller()
  expect(outcomeOf(await server.call('/tasks/current', { token }))).toBe('404 task_not_found')
})
