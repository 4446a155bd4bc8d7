import { idFrom, type RunId } from '../../../shared/lib/ids.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { makeDm, say } from '../../kit/talk.ts'
import { options, questionCalls, secretRequest, secretsKey } from './questions-kit.ts'
import { made } from './tasks-kit.ts'

let server: TestServer, member: Person, other: Person
beforeAll(async () => {
  ;({ server, member, other } = await startWithPeople({ settings: secretsKey }))
})
afterAll(() => server.stop())

const { agentCaller, post, working, wokenRun, ask, asked, answer } = questionCalls(() => ({ server, member }))

describe('asking', () => {
  test('returns the question and a sentinel, and the run stops', async () => {
    const { agent, runId, token } = await agentCaller()
    const reply = await ask(token)
    expect(reply.status).toBe(201)
    const { question, sentinel } = reply.body
    expect(sentinel).toContain(question.id)
    expect(question).toEqual({
      object: 'question',
      id: expect.stringMatching(/^qst_\w{16}$/),
      workspaceId: member.workspaceId,
      taskId: null,
      conversationId: null,
      runId,
      sessionId: expect.any(String),
      status: 'open',
      prompt: 'Which one?',
      answerMode: 'free_text',
      options: null,
      secretRequest: null,
      askedBy: { type: 'agent', id: agent.id },
      answer: null,
      answeredBy: null,
      answeredAt: null,
      waitUntil: null,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    })
    const run = await server.ok(`/runs/${runId}`)
    expect(run).toMatchObject({ status: 'succeeded', exitReason: 'question_asked' })
    expect(run.waitingOn).toMatchObject({ kind: 'question', id: question.id, label: 'Which one?' })
    expect(outcomeOf(await ask(token))).toBe('401 auth_revoked')
  })

  test('is for agents, in a run of their own, in their own name', async () => {
    const { agent, token } = await agentCaller()
    const stranger = await agentCaller()
    expect(outcomeOf(await ask(member.token))).toBe('403 user_cannot_create_question')
    for (const runId of [stranger.runId, 'run_0000000000000000'])
      expect(outcomeOf(await ask(token, { runId }))).toBe('404 question_run_required')
    expect(outcomeOf(await ask(token, { askedBy: { type: 'agent', id: stranger.agent.id } }))).toBe(
      '400 validation_error',
    )
    const nobody = { askedBy: { type: 'system' }, answerMode: 'secret_input', secretRequest: secretRequest() }
    expect(outcomeOf(await ask(token, nobody))).toBe('400 secret_input_requires_agent')
    expect(outcomeOf(await server.call('/questions', { body: { prompt: 'x' }, token }))).toBe(
      '400 idempotency_invalid_key',
    )
    expect(outcomeOf(await ask(token, { askedBy: { type: 'agent', id: agent.id }, runId: 'current' }))).toBe('201')
  })

  test('has options in the select modes, a secret request in secret_input, and is no gate', async () => {
    const { token } = await agentCaller()
    const request = secretRequest()
    for (const [body, expected] of [
      [{ answerMode: 'single_select' }, '400 options_required'],
      [{ answerMode: 'multi_select', options: [] }, '400 options_required'],
      [{ options }, '400 options_not_allowed'],
      [{ answerMode: 'secret_input', options, secretRequest: request }, '400 options_not_allowed'],
      [{ answerMode: 'secret_input' }, '400 secret_request_required'],
      [{ secretRequest: request }, '400 secret_request_not_allowed'],
      [{ answerMode: 'single_select', options, secretRequest: request }, '400 secret_request_not_allowed'],
      [{ outcome: 'approve' }, '400 question_not_a_gate'],
      [{ scope: 'once' }, '400 question_not_a_gate'],
      [{ appliedScope: 'always' }, '400 question_not_a_gate'],
      [{ answerMode: 'single_select', options: [options[0], options[0]] }, '400 validation_error'],
      [{ answerMode: 'secret_input', secretRequest: { ...request, reason: '' } }, '400 validation_error'],
      [{ answerMode: 'secret_input', secretRequest: { ...request, reason: 'x'.repeat(2001) } }, '400 validation_error'],
      [{ answerMode: 'secret_input', secretRequest: { ...request, envVarName: 'PATH' } }, '400 validation_error'],
      [{ answerMode: 'secret_input', secretRequest: { ...request, envVarName: 'SVC_TOKEN' } }, '400 validation_error'],
      [{ prompt: '' }, '400 validation_error'],
      [{ taskId: 'tsk_0000000000000000' }, '404 question_task_scope_mismatch'],
      [{ taskId: 'current' }, '404 question_task_scope_mismatch'],
      [{ conversationId: 'cnv_0000000000000000' }, '404 conversation_not_found'],
    ] as const)
      expect([body, outcomeOf(await ask(token, body))]).toEqual([body, expected])
  })

  test('fits into one message, in which it is shown, with all of its options', async () => {
    const { token } = await agentCaller()
    const many = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ key: `k${n}`, label: 'l'.repeat(1_000) }))
    const asking = (count: number) => ask(token, { answerMode: 'single_select', options: many(count) })
    const { status, body } = await asking(79)
    expect([status, body.error]).toMatchObject([400, { code: 'validation_error', param: 'options' }])
    expect(outcomeOf(await asking(78))).toBe('201')
  })

  test('once the run is being ended for another reason is refused, and the question is closed', async () => {
    const { work, device, person } = await working()
    await server.ok(`/runs/${work.runId}/cancel`, { body: {}, token: person.token })
    expect(outcomeOf(await ask(work.token))).toBe('409 hitl_stop_failed')
    const { data } = await server.ok(`/questions?runId=${work.runId}`)
    expect(data).toMatchObject([
      {
        status: 'resolved',
        answer: { text: '[system:stop_failed]', selected: null },
        answeredBy: null,
        answeredAt: null,
      },
    ])
    await work.end('interrupted')
    await device.disconnect()
  })

  test('ends a run on a device through the device; one that ends otherwise closes its question', async () => {
    const { work, device } = await working()
    await work.events({ kind: 'session', data: { sessionId: 'session-9' } })
    const { question } = (await ask(work.token)).body
    expect(question.sessionId).toBe('session-9')
    expect((await device.next('run.cancel')).exitReason).toBe('question_asked')
    const secret = await ask(work.token, { answerMode: 'secret_input', secretRequest: secretRequest() })
    expect(outcomeOf(secret)).toBe('409 hitl_stop_failed')
    await work.end('error')
    expect(await server.ok(`/questions/${question.id}`)).toMatchObject({
      status: 'resolved',
      answer: { text: '[system:run_ended]', selected: null, secretId: null },
      answeredBy: null,
    })
    expect((await server.ok(`/questions?sessionId=session-9&status=resolved`)).data).toHaveLength(2)
    const closed = (await server.ok(`/questions?runId=${work.runId}`)).data.find(
      (row: { answerMode: string }) => row.answerMode === 'secret_input',
    )
    expect(closed).toMatchObject({ status: 'resolved', answer: null })
    await device.disconnect()
  })

  test('stands when the agent asked and was done before its device had heard that it must stop', async () => {
    const { work, device, agent, person } = await working()
    const { question } = (await ask(work.token)).body
    await work.end('completed')
    expect((await server.ok(`/questions/${question.id}`)).status).toBe('open')
    expect(outcomeOf(await answer(question.id, { text: 'The red one' }, person.token))).toBe('200')
    expect(await server.ok(`/runs/${await wokenRun(agent.id)}`)).toMatchObject({ parentRunId: work.runId })
    await device.disconnect()
  })

  test('masks what looks like a secret', async () => {
    const { question } = await asked({ prompt: 'Is TOKEN=abcdefgh1234 right?' })
    expect(question.prompt).toBe('Is TOKEN=[masked] right?')
  })
})

describe('on a task', () => {
  /** A task whose agent has asked on it. */
  async function askedOnTask(body: Record<string, unknown> = {}) {
    const agent = await server.createAgent({}, member.token)
    const task = await made(
      server,
      '/tasks',
      { title: `Task ${crypto.randomUUID()}`, assignee: { type: 'agent', id: agent.id } },
      member.token,
    )
    const runs = async () => (await server.ok(`/runs?task=${task.id}`)).data as { id: string }[]
    await expect.poll(async () => (await runs()).length).toBe(1)
    const runId = idFrom<RunId>((await runs())[0]!.id)
    const reply = await ask(await server.runToken(runId), body)
    expect(outcomeOf(reply)).toBe('201')
    return { agent, task, runId, question: reply.body.question }
  }
  const comments = async (taskId: string) => (await server.ok(`/tasks/${taskId}/comments`)).data

  test('the prompt is posted there, and a reply in its thread answers', async () => {
    const { agent, task, runId, question } = await askedOnTask({ answerMode: 'single_select', options })
    expect(question).toMatchObject({ taskId: task.id, conversationId: expect.stringMatching(/^cnv_/) })
    const [shown] = await comments(task.id)
    expect(shown).toMatchObject({ author: { type: 'agent' }, parentMessageId: null })
    for (const words of ['Which one?', '`eu`', 'Europe']) expect(shown.body).toContain(words)
    const blocked = (await server.ok(`/tasks/${task.id}`)).conditions
    expect(blocked).toContainEqual(expect.objectContaining({ type: 'blocked', reason: 'question' }))
    const reply = { content: 'Take Europe, please', parentMessageId: shown.id }
    await made(server, `/tasks/${task.id}/comments`, reply, other.token)
    expect(await server.ok(`/questions/${question.id}`)).toMatchObject({
      status: 'resolved',
      answer: { text: 'Take Europe, please', selected: null },
      answeredBy: { type: 'user', id: other.userId },
    })
    const woken = await wokenRun(agent.id)
    expect(await server.ok(`/runs/${woken}`)).toMatchObject({ parentRunId: runId, task: { id: task.key } })
    expect((await server.ok(`/questions?taskId=${task.key}`)).data).toMatchObject([{ id: question.id }])
  })

  test('a reply to another reply in its thread answers, too', async () => {
    const { task, question } = await askedOnTask()
    const [shown] = await comments(task.id)
    const colleague = await agentCaller()
    const reply = (content: string, parentMessageId: string, token: string) =>
      made(server, `/tasks/${task.id}/comments`, { content, parentMessageId }, token)
    const hint = await reply('Both would do.', shown.id, colleague.token)
    expect((await server.ok(`/questions/${question.id}`)).status).toBe('open')
    expect(await reply('Then the first', hint.id, other.token)).toMatchObject({ parentMessageId: hint.id })
    expect(await server.ok(`/questions/${question.id}`)).toMatchObject({
      status: 'resolved',
      answer: { text: 'Then the first', selected: null },
    })
  })

  test('a comment elsewhere answers nothing, nor a reply to a question for a secret', async () => {
    const { task, question } = await askedOnTask({ answerMode: 'secret_input', secretRequest: secretRequest() })
    const [shown] = await comments(task.id)
    await made(server, `/tasks/${task.id}/comments`, { content: 'By the way' }, other.token)
    await made(server, `/tasks/${task.id}/comments`, { content: 'the value', parentMessageId: shown.id }, other.token)
    expect((await server.ok(`/questions/${question.id}`)).status).toBe('open')
  })

  test('one is read with what is around it', async () => {
    const { task, runId, question } = await askedOnTask()
    const include = 'include[]=task&include[]=run&include[]=session&include[]=conversation'
    expect(await server.ok(`/questions/${question.id}?${include}`)).toMatchObject({
      id: question.id,
      task: { object: 'task', id: task.id, key: task.key, title: task.title },
      run: { object: 'run', id: runId },
      session: { object: 'session', id: question.sessionId, runId },
      conversation: { object: 'conversation', id: question.conversationId },
    })
    expect(outcomeOf(await server.call(`/questions/${question.id}?include[]=agent`))).toBe('400 invalid_include')
  })

  test('an approval asked on a task holds the task too', async () => {
    const agent = await server.createAgent({}, member.token)
    const assignee = { type: 'agent', id: agent.id }
    const task = await made(server, '/tasks', { title: `Task ${crypto.randomUUID()}`, assignee }, member.token)
    const runs = async () => (await server.ok(`/runs?task=${task.id}`)).data as { id: RunId }[]
    await expect.poll(async () => (await runs()).length).toBe(1)
    const token = await server.runToken((await runs())[0]!.id)
    const { approval } = (await post('/approvals', { prompt: 'May I?' }, token)).body
    expect(approval.taskId).toBe(task.id)
    expect((await server.ok(`/approvals/${approval.id}?include=task`)).task).toMatchObject({ key: task.key })
    expect((await server.ok(`/approvals?taskId=${task.key}`)).data).toMatchObject([{ id: approval.id }])
    const conditions = async () => (await server.ok(`/tasks/${task.id}`)).conditions as unknown[]
    expect(await conditions()).toContainEqual(expect.objectContaining({ type: 'blocked', reason: 'approval' }))
    const wake = await server.ok(`/agents/${agent.id}/runs`, { body: { taskId: task.key } })
    expect(wake).toMatchObject({ kind: 'not_dispatched', reason: 'task_hitl_open' })
    expect(outcomeOf(await post(`/approvals/${approval.id}/approve`, {}))).toBe('200')
    await wokenRun(agent.id)
    expect(await conditions()).not.toContainEqual(expect.objectContaining({ reason: 'approval' }))
  })
})

describe('reading', () => {
  test('names a dm only to who sees it, though the owner of its agent may answer what it asks there', async () => {
    const agent = await server.createAgent({}, other.token)
    const { id } = await makeDm(server, agent.id, member.token)
    await server.ok(`/conversations/${id}`, { body: { title: 'My notice' }, token: member.token })
    await say(server, id, 'Begin', member.token)
    const runs = async () => (await server.ok(`/runs?agent=${agent.id}`)).data as { id: RunId }[]
    await expect.poll(async () => (await runs()).length).toBe(1)
    const { question } = (await ask(await server.runToken((await runs())[0]!.id))).body
    const read = (token: string) => server.ok(`/questions/${question.id}?include[]=conversation`, { token })
    expect((await read(member.token)).conversation).toMatchObject({ id, title: 'My notice', kind: 'dm' })
    expect(await read(other.token)).toMatchObject({ id: question.id, conversation: null })
    const { token } = await server.addPerson('member')
    expect(outcomeOf(await server.call(`/questions/${question.id}`, { token }))).toBe('404 question_not_found')
  })

  test('a list is newest first, takes filters, and pages in both directions', async () => {
    const ids: string[] = []
    for (let n = 0; n < 3; n++) ids.unshift((await asked()).id)
    const last = await server.ok(`/questions/${ids[0]}`)
    const list = async (query: string) => server.ok(`/questions?${query}`)
    const idsOf = async (query: string) => ((await list(query)).data as { id: string }[]).map((row) => row.id)
    expect((await idsOf('')).slice(0, 3)).toEqual(ids)
    expect(await list('limit=2')).toMatchObject({ hasMore: true, nextCursor: ids[1] })
    expect((await idsOf(`limit=1&startingAfter=${ids[1]}`))[0]).toBe(ids[2])
    expect(await idsOf(`endingBefore=${ids[2]}&limit=2`)).toEqual([ids[0], ids[1]])
    expect(outcomeOf(await server.call(`/questions?startingAfter=${ids[0]}&endingBefore=${ids[1]}`))).toBe(
      '400 invalid_cursor',
    )
    expect(outcomeOf(await server.call('/questions?startingAfter=qst_0000000000000000'))).toBe('400 invalid_cursor')
    expect(await idsOf(`askedByAgentId=${last.askedBy.id}`)).toEqual([ids[0]])
    expect(await idsOf(`runId=${last.runId}&status=open`)).toEqual([ids[0]])
    expect(await idsOf(`runId=${last.runId}&status=resolved`)).toEqual([])
    expect(await idsOf(`sessionId=${last.sessionId}`)).toEqual([ids[0]])
    expect(await idsOf('conversationId=cnv_0000000000000000')).toEqual([])
    expect(await idsOf('askedByAgentId=@nobody')).toEqual([])
    expect(outcomeOf(await server.call('/questions?status=closed'))).toBe('400 validation_error')
    expect(outcomeOf(await server.call(`/questions/${ids[0]}?include=x`))).toBe('400 invalid_include')
    expect(outcomeOf(await server.call('/questions/qst_0000000000000000'))).toBe('404 question_not_found')
    expect(outcomeOf(await server.call('/questions/1'))).toBe('400 invalid_id_format')
  })
})
