import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { setDeleted } from '../../kit/rows.ts'
import { codeOf, outcomeOf, type Person, TestServer } from '../../kit/server.ts'
import { options, questionCalls, secretRequest, secretsKey } from './questions-kit.ts'

// Answers to questions, secrets among them, and what comes of them.

let server: TestServer, member: Person, other: Person
beforeAll(async () => {
  ;({ server, member, other } = await startWithPeople({ settings: secretsKey }))
})
afterAll(() => server.stop())

const { agentCaller, working, wokenRun, ask, asked, answer } = questionCalls(() => ({ server, member }))

describe('answering', () => {
  test('a free text needs a text and nothing else', async () => {
    const { id } = await asked()
    for (const [given, expected] of [
      [{ text: ' \n' }, '400 invalid_answer'],
      [{}, '400 invalid_answer'],
      [{ text: 'x', selected: ['eu'] }, '400 answer_mode_mismatch'],
    ] as const)
      expect([given, outcomeOf(await answer(id, given))]).toEqual([given, expected])
    const reply = await answer(id, { text: 'The left one', selected: [] }, other.token)
    expect(reply.body).toMatchObject({
      id,
      status: 'resolved',
      answer: { text: 'The left one', selected: null, secretId: null },
      answeredBy: { type: 'user', id: other.userId },
      answeredAt: expect.any(String),
    })
    expect(outcomeOf(await answer(id, { text: 'again' }))).toBe('409 question_resolved')
    expect(await server.ok(`/questions/${id}`)).toEqual(reply.body)
  })

  test('a choice of one takes one key, a choice of many several and a note', async () => {
    const one = await asked({ answerMode: 'single_select', options })
    expect(one.question.options).toEqual(options)
    for (const [given, expected] of [
      [{ text: 'eu' }, '400 answer_mode_mismatch'],
      [{ selected: [] }, '400 answer_mode_mismatch'],
      [{ selected: ['eu', 'us'] }, '400 answer_mode_mismatch'],
      [{ selected: ['asia'] }, '400 invalid_option_key'],
    ] as const)
      expect([given, outcomeOf(await answer(one.id, given))]).toEqual([given, expected])
    for (const given of [{ selected: ['asia'] }, { selected: [] }, { text: 'Europe' }])
      expect((await answer(one.id, given)).body.error).toMatchObject({
        allowedValues: ['eu', 'us'],
        message: expect.stringMatching(/exactly one option .*--select/),
      })
    expect((await answer(one.id, { selected: ['europe'] })).body.answer).toEqual({
      text: null,
      selected: ['eu'],
      secretId: null,
    })
    const many = await asked({ answerMode: 'multi_select', options })
    expect(outcomeOf(await answer(many.id, { selected: ['eu', 'asia'] }))).toBe('400 invalid_option_key')
    expect((await answer(many.id, { selected: ['us', 'eu', 'us'], text: 'both' })).body.answer).toMatchObject({
      text: 'both',
      selected: ['us', 'eu'],
    })
  })

  test('is for people, and for questions they can see', async () => {
    const { id } = await asked()
    const { token } = await agentCaller()
    expect(outcomeOf(await answer(id, { text: 'x' }, token))).toBe('403 agent_cannot_answer_question')
    expect(outcomeOf(await answer('qst_0000000000000000', { text: 'x' }))).toBe('404 question_not_found')
    const stranger = await server.addPerson('owner', 'elsewhere')
    expect(outcomeOf(await answer(id, { text: 'x' }, stranger.token))).toBe('404 question_not_found')
    const hidden = await agentCaller({ visibility: 'private' })
    const { question } = (await ask(hidden.token)).body
    expect(outcomeOf(await answer(question.id, { text: 'x' }, other.token))).toBe('404 question_not_found')
    expect(outcomeOf(await server.call(`/questions/${id}/answer`, { body: { answer: { text: 'x' } } }))).toBe(
      '400 idempotency_invalid_key',
    )
    expect(outcomeOf(await answer(question.id, { text: 'x' }))).toBe('200')
  })

  test('wakes the agent in the same session, with what was chosen', async () => {
    const { id, agent, runId } = await asked({ answerMode: 'single_select', options, prompt: 'Where to deploy?' })
    await answer(id, { selected: ['eu'] })
    const woken = await wokenRun(agent.id)
    expect(await server.ok(`/runs/${woken}`)).toMatchObject({ parentRunId: runId, triggerSource: 'approval_resolved' })
    const { prompt } = await server.ok(`/runs/${woken}/context`)
    for (const words of ['Where to deploy?', 'eu (Europe)']) expect(prompt).toContain(words)
  })

  test('of two people at once only one answers', async () => {
    const { id, agent } = await asked()
    const replies = await Promise.all(Array.from({ length: 4 }, async (_, n) => answer(id, { text: `answer ${n}` })))
    expect(replies.map(outcomeOf).toSorted()).toEqual([
      '200',
      ...Array.from({ length: 3 }, () => '409 question_resolved'),
    ])
    await wokenRun(agent.id)
  })
})

test('an answer that comes before the run has ended wakes the agent when it has', async () => {
  const { work, device, person } = await working()
  await work.events({ kind: 'session', data: { sessionId: 'held' } })
  const { question } = (await ask(work.token)).body
  await device.next('run.cancel')
  expect(outcomeOf(await answer(question.id, { text: 'at once' }, person.token))).toBe('200')
  await server.plane.waker.sweep()
  expect(device.pending).not.toContain('run.offer')
  await work.end('question_asked', { sessionId: 'held' })
  const { spec } = await device.next('run.offer')
  expect(spec.prompt).toContain('at once')
  await device.disconnect()
})

test('of a run that stopped to ask the question is read, whatever its harness calls the stop', async () => {
  const { work, device, person } = await working()
  const { question } = (await ask(work.token, { prompt: 'Which way?' })).body
  await device.next('run.cancel')
  const text = '[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=null'
  await work.events({ kind: 'result', data: { text, isError: true } })
  await work.end('question_asked')
  const read = async () =>
    (await server.ok(`/runs/${work.runId}?expand[]=transcriptRead`, { token: person.token })).transcriptRead
  expect(await read()).toMatchObject({ finalAnswer: 'Which way?', isError: false })
  await answer(question.id, { text: 'Left.' }, person.token)
  expect(await read()).toMatchObject({ finalAnswer: 'Which way?', isError: false })
  await device.disconnect()
})

describe('secrets', () => {
  const give = (id: string, value: unknown, token: string = member.token) =>
    server.call(`/questions/${id}/secret`, { body: { value }, token })

  test('go encrypted into the store and to the agent alone; the answer tells nothing', async () => {
    const request = secretRequest()
    const { id, agent } = await asked({ answerMode: 'secret_input', secretRequest: request })
    const value = `s3cret ${crypto.randomUUID()}`
    const reply = await give(id, value, other.token)
    expect(reply.body).toMatchObject({
      id,
      status: 'resolved',
      secretRequest: request,
      answer: null,
      answeredBy: { type: 'user', id: other.userId },
    })
    const { data } = await server.ok('/secrets')
    expect(data[0]).toMatchObject({
      id: expect.stringMatching(/^sec_\w{16}$/),
      name: request.name,
      provider: 'github',
      envVarName: 'DEPLOY_KEY',
      grantedTo: [{ type: 'agent', id: agent.id }],
      createdBy: { type: 'user', id: other.userId },
    })
    const { prompt } = await server.ok(`/runs/${await wokenRun(agent.id)}/context`)
    expect(prompt).toContain('DEPLOY_KEY')
    for (const told of [reply.body, data, prompt]) expect(JSON.stringify(told)).not.toContain(value)
    for (const table of ['secrets', 'questions', 'wakes', 'run_details', 'idempotency'])
      expect(JSON.stringify(await server.database.root(table))).not.toContain(value)
  })

  test('reach the woken run as a variable, and are masked when its agent repeats them', async () => {
    const { work, device, person } = await working()
    const { question } = (await ask(work.token, { answerMode: 'secret_input', secretRequest: secretRequest() })).body
    await device.next('run.cancel')
    await work.end('question_asked')
    const value = 'plain words that look like nothing'
    await give(question.id, value, person.token)
    const offer = await device.next('run.offer')
    device.send({ type: 'run.accepted', runId: offer.runId, fence: offer.fence })
    const start = await device.next('run.start')
    expect(start.secrets).toEqual({ DEPLOY_KEY: value })
    expect(JSON.stringify(offer)).not.toContain(value)
    const again = await ask(start.token, { prompt: `Is it "${value}"?` })
    expect(again.body.question.prompt).toBe('Is it "[redacted:DEPLOY_KEY]"?')
    await device.disconnect()
  })

  test('are given by people, to questions that ask for them, once', async () => {
    const { id } = await asked({ answerMode: 'secret_input', secretRequest: secretRequest() })
    const plain = await asked()
    const { token } = await agentCaller()
    expect(outcomeOf(await give(id, 'x', token))).toBe('403 http_exception')
    expect(outcomeOf(await answer(id, { text: 'x' }))).toBe('409 question_needs_secret')
    expect(outcomeOf(await give(plain.id, 'x'))).toBe('409 question_not_secret_input')
    expect(outcomeOf(await give('qst_0000000000000000', 'x'))).toBe('404 question_not_found')
    for (const value of ['', 'x'.repeat(10_001), 1, 'a\0b'])
      expect(outcomeOf(await give(id, value))).toBe('400 validation_error')
    expect(outcomeOf(await give(id, 'x'.repeat(10_000)))).toBe('200')
    expect(outcomeOf(await give(id, 'y'))).toBe('409 question_resolved')
  })

  test('come from a colleague under the name of a credential only', async () => {
    const asking = (envVarName: string) =>
      asked({ answerMode: 'secret_input', secretRequest: { ...secretRequest(), envVarName } })
    for (const envVarName of ['DATABASE_URL', 'NOT_YET_ON_THE_LIST_OPTS']) {
      const { id } = await asking(envVarName)
      expect(outcomeOf(await give(id, 'x', other.token))).toBe('403 http_exception')
      expect((await server.ok(`/questions/${id}`)).status).toBe('open')
      expect(outcomeOf(await give(id, 'x', member.token))).toBe('200')
    }
    const { id } = await asking('DEPLOY_TOKEN')
    expect(outcomeOf(await give(id, 'x', other.token))).toBe('200')
  })

  test('have a name of their own, when asked for and when given', async () => {
    const request = secretRequest()
    const body = { answerMode: 'secret_input', secretRequest: request }
    const [first, second] = [await asked(body), await asked(body)]
    expect(outcomeOf(await give(first.id, 'one'))).toBe('200')
    expect(outcomeOf(await give(second.id, 'two'))).toBe('409 secret.duplicate_name')
    expect((await server.ok(`/questions/${second.id}`)).status).toBe('open')
    const { token } = await agentCaller()
    expect(outcomeOf(await ask(token, body))).toBe('409 secret.duplicate_name')
  })

  test('are closed with the agent that asked, by the system, and stay so when it is restored', async () => {
    const { id, agent } = await asked({ answerMode: 'secret_input', secretRequest: secretRequest() })
    await server.ok(`/agents/${agent.id}`, { method: 'DELETE' })
    const closed = { status: 'resolved', answer: null, answeredBy: null, answeredAt: null }
    expect(await server.ok(`/questions/${id}`)).toMatchObject(closed)
    expect(outcomeOf(await give(id, 'x', server.owner.token))).toBe('409 secret_input_requires_agent')
    await server.ok(`/agents/${agent.id}/restore`, { body: {} })
    expect(await server.ok(`/questions/${id}`)).toMatchObject(closed)
    expect(outcomeOf(await give(id, 'x', server.owner.token))).toBe('409 question_resolved')
  })

  test('are for an agent that is there, and of a provider that the server takes', async () => {
    const { id, agent } = await asked({ answerMode: 'secret_input', secretRequest: secretRequest() })
    await setDeleted(server, agent.id, 1)
    const reply = await give(id, 'x', server.owner.token)
    expect([reply.status, codeOf(reply)]).toEqual([409, 'secret_input_requires_agent'])
    await setDeleted(server, agent.id, null)
    const picky = await TestServer.start({
      beside: server,
      settings: { ...secretsKey, SVC_SECRET_PROVIDERS: 'gitlab, npm' },
    })
    expect(outcomeOf(await picky.call(`/questions/${id}/secret`, { body: { value: 'x' } }))).toBe(
      '409 secret_provider_unbrokerable',
    )
    const { token } = await agentCaller()
    const body = { prompt: 'x', answerMode: 'secret_input', secretRequest: secretRequest() }
    const refused = await picky.call('/questions', { body, token, headers: { 'Idempotency-Key': 'picky' } })
    expect([outcomeOf(refused), refused.body.error.allowedValues]).toEqual(['400 validation_error', ['gitlab', 'npm']])
    await picky.stop()
  })
})
