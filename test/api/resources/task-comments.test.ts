import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FakeDevice } from '../../kit/fake-device.ts'
import { outcomeOf, TestServer, type Person, type Reply } from '../../kit/server.ts'
import { keyed, liveRun, say, wakesIn } from '../../kit/talk.ts'

let server: TestServer
let device: FakeDevice
let member: Person
beforeAll(async () => {
  server = await TestServer.start()
  device = await FakeDevice.connect(server)
  member = await server.addPerson('member')
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
})

// Tests look into answers of all shapes.
// oxlint-disable-next-line typescript/no-explicit-any
const makeTask = (body: object = {}): Promise<any> =>
  server.ok('/tasks', { body: { title: `Task ${crypto.randomUUID()}`, ...body }, headers: keyed() })
const comment = (task: string, body: object, token?: string): Promise<Reply> =>
  server.call(`/tasks/${task}/comments`, { body, ...(token === undefined ? {} : { token }) })
const list = (task: string, query = '') => server.ok(`/tasks/${task}/comments${query}`)
const transition = (task: string, body: object) => server.ok(`/tasks/${task}/transition`, { body, headers: keyed() })
const conversationOf = async (taskId: string): Promise<string> =>
  (await server.ok(`/conversations?taskId=${taskId}`)).data[0].id

/** A task that an agent has, its first run over. */
async function assigned() {
  const agent = await server.createAgent()
  const task = await makeTask({ assignee: { type: 'agent', id: agent.id } })
  const run = await device.take()
  await run.end()
  return { agent, task, run }
}

describe('comments', () => {
  test('are messages of the task’s conversation, in a shape of their own', async () => {
    const task = await makeTask()
    const reply = await comment(task.key, { content: 'First *words*' })
    expect(reply.status).toBe(201)
    expect(reply.body).toEqual({
      id: expect.stringMatching(/^msg_/),
      body: 'First *words*',
      author: { type: 'user', handle: expect.stringMatching(/^@/), name: expect.any(String) },
      taskId: task.key,
      parentMessageId: null,
      attachments: [],
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    })
    const second = await comment(task.id, { body: 'A reply', parentMessageId: reply.body.id }, member.token)
    expect(second.body).toMatchObject({ body: 'A reply', parentMessageId: reply.body.id })
    expect((await list(task.id)).data).toEqual([reply.body, second.body])
    const conversation = await server.ok(`/conversations/${await conversationOf(task.key)}`)
    expect(conversation).toMatchObject({ kind: 'dm', taskId: task.id, messageCount: 2, triggerMode: 'respond_to_all' })
    expect((await server.ok(`/messages/${second.body.id}`)).taskId).toBe(task.id)
    // Whoever comments is in the talk, and edits and deletes there.
    expect(conversation.participants).toContainEqual({ type: 'user', id: member.userId })
    const edited = await server.call(`/messages/${second.body.id}`, { body: { body: 'Changed' }, token: member.token })
    expect(edited.status).toBe(200)
    await server.ok(`/messages/${reply.body.id}/delete`, { method: 'POST', headers: keyed() })
    expect((await list(task.id)).data.map((each: { body: string }) => each.body)).toEqual(['Changed'])
  })

  test('page forward, oldest first', async () => {
    const task = await makeTask()
    expect(await list(task.key)).toMatchObject({ object: 'list', data: [], hasMore: false, nextCursor: null })
    for (let n = 1; n <= 5; n++) await comment(task.key, { content: `c${n}` })
    const bodies = (page: { data: { body: string }[] }) => page.data.map((each) => each.body)
    const first = await list(task.key, '?limit=2')
    expect([bodies(first), first.hasMore]).toEqual([['c1', 'c2'], true])
    const second = await list(task.key, `?limit=2&after=${first.nextCursor}`)
    expect(bodies(second)).toEqual(['c3', 'c4'])
    const third = await list(task.key, `?limit=2&after=${second.data[1].id}`)
    expect([bodies(third), third.hasMore, third.nextCursor]).toEqual([['c5'], false, null])
    const refused = async (query: string) => outcomeOf(await server.call(`/tasks/${task.key}/comments${query}`))
    expect(await refused('?after=msg_0000000000000000')).toBe('400 invalid_cursor')
    expect(await refused('?limit=101')).toBe('400 validation_error')
  })

  test('a missing task gets the plain answer', async () => {
    const project = await server.ok('/projects', { body: { name: 'Private', visibility: 'private' } })
    const hidden = await makeTask({ projectId: project.id })
    for (const [task, token] of [
      ['tsk_0000000000000000', server.owner.token],
      ['MAI-999999', server.owner.token],
      ['current', server.owner.token],
      [hidden.key, member.token],
    ] as const) {
      const read = await server.call(`/tasks/${task}/comments`, { token })
      expect([read.status, read.body]).toEqual([404, { error: 'Task not found' }])
      const written = await comment(task, { content: 'x' }, token)
      expect([written.status, written.body]).toEqual([404, { error: 'Task not found' }])
    }
  })

  test('refuse what does not fit', async () => {
    const [task, other] = [await makeTask(), await makeTask()]
    const elsewhere = (await comment(other.key, { content: 'Elsewhere' })).body
    const refused = async (body: object) => outcomeOf(await comment(task.key, body))
    expect(await refused({ content: ' \n' })).toBe('400 empty_comment')
    expect(await refused({})).toBe('400 validation_error')
    expect(await refused({ content: ['gh', `p_${'a1B2'.repeat(9)}`].join('') })).toBe('400 secret_in_message')
    expect(await refused({ content: 'x', parentMessageId: elsewhere.id })).toBe('400 parent_not_in_conversation')
    expect(await refused({ content: 'x', attachmentIds: ['file_1'] })).toBe('404 resource_not_found')
    expect(await refused({ content: 'x', attachmentIds: Array(21).fill('f') })).toBe('400 validation_error')
    expect(await refused({ content: 'x', reopen: 'yes' })).toBe('400 validation_error')
    expect((await list(task.key)).data).toEqual([])
  })
})

describe('comments wake', () => {
  test('the assignee, who answers in a comment', async () => {
    const { agent, task } = await assigned()
    await comment(task.key, { content: 'Please also test it.' }, member.token)
    const run = await device.take()
    expect(run.spec).toMatchObject({ agent: { id: agent.id } })
    expect(run.spec.prompt).toContain('Please also test it.')
    expect(run.spec.prompt).toContain(task.key)
    expect(await server.ok(`/runs/${run.runId}`)).toMatchObject({
      triggerSource: 'channel_message',
      task: { id: task.key },
      conversationId: await conversationOf(task.key),
    })
    // `current` is the task the run works on.
    const own = await comment('current', { content: 'On it.' }, run.token)
    expect(own.body).toMatchObject({ taskId: task.key, author: { type: 'agent', name: agent.name } })
    await run.events({ kind: 'result', data: { text: 'Tested.', isError: false } })
    await run.end()
    const bodies = (await list(task.key)).data.map((each: { body: string }) => each.body)
    expect(bodies).toEqual(['Please also test it.', 'On it.', 'Tested.'])
    expect(await wakesIn(server, await conversationOf(task.key))).toHaveLength(1)
  })

  test('whoever is mentioned, who then is in the talk', async () => {
    const { agent, task } = await assigned()
    const helper = await server.createAgent()
    await comment(task.key, { content: `${helper.handle}, can you look?` })
    const id = await conversationOf(task.key)
    expect(await wakesIn(server, id)).toEqual(
      expect.arrayContaining([
        [agent.id, 'channel_message'],
        [helper.id, 'mention'],
      ]),
    )
    const runs = [await device.take(), await device.take()]
    const helping = runs.find((run) => run.spec.agent.id === helper.id)!
    expect((await server.ok(`/conversations/${id}`, { token: helping.token })).taskId).toBe(task.id)
    await say(server, id, 'Looking.', helping.token)
    for (const run of runs) await run.end()
    // The helper's comment woke the assignee.
    await (await device.take()).end()
  })

  test('an assignee of later, who may then read the talk', async () => {
    const task = await makeTask()
    await comment(task.key, { content: 'Before anybody had it.' })
    const agent = await server.createAgent()
    const body = { assignee: { type: 'agent', id: agent.id } }
    await server.ok(`/tasks/${task.key}/assign`, { body, headers: keyed() })
    await (await device.take()).end()
    await comment(task.key, { content: 'Now you.' })
    const run = await device.take()
    expect(run.spec.prompt).toContain('Before anybody had it.')
    const id = await conversationOf(task.key)
    const read = await server.ok(`/conversations/${id}?include=messages`, { token: run.token })
    expect(read.messages.map((each: { body: string }) => each.body)).toEqual(['Before anybody had it.', 'Now you.'])
    await run.end()
  })

  test('once for all that was said while the assignee worked', async () => {
    const { agent, task } = await assigned()
    await comment(task.key, { content: 'one' })
    const first = await device.take()
    await comment(task.key, { content: 'two' })
    await comment(task.key, { content: 'three' }, member.token)
    await first.end()
    const second = await device.take()
    expect(second.spec.prompt).toMatch(/two[\s\S]*three/)
    await second.end()
    expect((await server.ok(`/runs?agent=${agent.id}`)).data).toHaveLength(3)
  })

  test('nobody on a task that nobody has', async () => {
    const task = await makeTask()
    await comment(task.key, { content: 'Anybody?' })
    expect(await wakesIn(server, await conversationOf(task.key))).toEqual([])
  })
})

describe('reopen and interrupt', () => {
  test('a comment opens a finished task again, the comment being the reason, and takes it out of the archive', async () => {
    const task = await makeTask()
    await transition(task.key, { status: 'done' })
    await server.ok(`/tasks/${task.key}/archive`, { method: 'POST', headers: keyed() })
    const reply = await comment(task.key, { content: 'Not quite done.', reopen: true })
    expect(reply.status).toBe(201)
    expect(await server.ok(`/tasks/${task.key}`)).toMatchObject({ status: 'open', completedAt: null, archivedAt: null })
    const again = await comment(task.key, { content: 'Still open.', reopen: true })
    expect(outcomeOf(again)).toBe('409 invalid_task_transition')
    expect((await list(task.key)).data).toHaveLength(1)
    await transition(task.key, { status: 'cancelled' })
    expect((await comment(task.key, { content: 'A note only.' })).status).toBe(201)
    expect((await server.ok(`/tasks/${task.key}`)).status).toBe('cancelled')
  })

  test('a comment interrupts the run of the assignee, and wakes it anew', async () => {
    const { agent, task } = await assigned()
    await comment(task.key, { content: 'Go.' })
    const run = await device.take()
    await comment(task.key, { content: 'Stop, do it otherwise.', interrupt: true }, member.token)
    expect(await device.next('run.cancel')).toMatchObject({ runId: run.runId, exitReason: 'interrupted' })
    await run.end('interrupted')
    expect((await server.ok(`/runs/${run.runId}`)).status).toBe('cancelled')
    const next = await device.take()
    expect(next.spec).toMatchObject({ agent: { id: agent.id } })
    expect(next.spec.prompt).toContain('Stop, do it otherwise.')
    await next.end()
  })

  test('a run does not interrupt itself', async () => {
    const { task } = await assigned()
    await comment(task.key, { content: 'Go.' })
    const run = await device.take()
    expect((await comment('current', { content: 'Working.', interrupt: true }, run.token)).status).toBe(201)
    expect((await server.ok(`/runs/${run.runId}`)).status).toBe('running')
    await run.end()
  })
})

test('a run of another task comments, too', async () => {
  const task = await makeTask()
  const agent = await server.createAgent()
  const run = await liveRun(server, device, agent.id)
  expect((await comment(task.key, { content: 'From outside.' }, run.token)).status).toBe(201)
  const missing = await comment('current', { content: 'x' }, run.token)
  expect([missing.status, missing.body]).toEqual([404, { error: 'Task not found' }])
  await run.end()
})
