import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type Person, type Reply, type TestServer } from '../../kit/server.ts'
import { questionCalls, secretRequest, secretsKey } from './questions-kit.ts'

// Questions whose runs do not stop: they wait for the answer, as long as they said.

let server: TestServer, member: Person
beforeAll(async () => {
  ;({ server, member } = await startWithPeople({ settings: { ...secretsKey, SVC_LEASE_MS: '3600000' } }))
})
afterAll(() => server.stop())

const { working, wokenRun, ask, answer } = questionCalls(() => ({ server, member }))

const shown = (id: string) => server.ok(`/questions/${id}`)
const runsOf = async (agentId: string) => (await server.ok(`/runs?agent=${agentId}`)).data as unknown[]

test('the run goes on, reads the answer itself, and nobody is woken', async () => {
  const { agent, work, device, person } = await working()
  const { question, sentinel } = (await ask(work.token, { waitMs: 60_000 })).body
  expect(sentinel).toBeNull()
  expect(Date.parse(question.waitUntil)).toBe(Date.parse(question.createdAt) + 60_000)
  expect(await server.ok(`/runs/${work.runId}`)).toMatchObject({
    status: 'running',
    waitingOn: { kind: 'question', id: question.id },
  })
  expect(outcomeOf(await answer(question.id, { text: 'The red one' }, person.token))).toBe('200')
  const read = await server.ok(`/questions/${question.id}`, { token: work.token })
  expect(read).toMatchObject({ status: 'resolved', answer: { text: 'The red one' } })
  expect(device.pending).not.toContain('run.cancel')
  await work.end('completed')
  await server.plane.sweeper.runAll()
  expect(await runsOf(agent.id)).toHaveLength(1)
  await device.disconnect()
})

test('one that nobody answers in time is closed, and the run goes on', async () => {
  const { agent, work, device } = await working()
  const { question } = (await ask(work.token, { waitMs: 60_000 })).body
  server.world.advance(59_000)
  await server.plane.sweeper.runAll()
  expect(await shown(question.id)).toMatchObject({ status: 'open' })
  server.world.advance(1_000)
  await server.plane.sweeper.runAll()
  expect(await shown(question.id)).toMatchObject({
    status: 'resolved',
    answer: { text: '[system:wait_timeout]', selected: null },
    answeredBy: null,
    answeredAt: null,
  })
  expect(outcomeOf(await answer(question.id, { text: 'late' }))).toBe('409 question_resolved')
  expect(await server.ok(`/runs/${work.runId}`)).toMatchObject({ status: 'running', waitingOn: null })
  await work.end('completed')
  expect(await runsOf(agent.id)).toHaveLength(1)
  await device.disconnect()
})

test('one whose run ends first is closed with it', async () => {
  const { work, device } = await working()
  const { question } = (await ask(work.token, { waitMs: 60_000 })).body
  await work.end('completed')
  expect(await shown(question.id)).toMatchObject({ status: 'resolved', answer: { text: '[system:run_ended]' } })
  await device.disconnect()
})

test('one whose run has stopped to ask something else wakes the agent with the answer', async () => {
  const { agent, work, device, person } = await working()
  const { question } = (await ask(work.token, { waitMs: 3_600_000 })).body
  expect(outcomeOf(await ask(work.token, { prompt: 'And when?' }))).toBe('201')
  await work.end('question_asked')
  expect(await server.ok(`/runs/${work.runId}`)).toMatchObject({ exitReason: 'question_asked' })
  expect(outcomeOf(await answer(question.id, { text: 'The red one' }, person.token))).toBe('200')
  expect(await server.ok(`/runs/${await wokenRun(agent.id)}`)).toMatchObject({ parentRunId: work.runId })
  await device.disconnect()
})

test('a run waits for twenty answers, and for another one when it has one of them', async () => {
  const { work, device, person } = await working()
  const asked: Reply[] = []
  for (let count = 0; count < 20; count++) asked.push(await ask(work.token, { waitMs: 60_000 }))
  expect(asked.map(outcomeOf)).toEqual(asked.map(() => '201'))
  expect(outcomeOf(await ask(work.token, { waitMs: 60_000 }))).toBe('400 validation_error')
  await answer(asked[7]!.body.question.id, { text: 'The red one' }, person.token)
  expect(outcomeOf(await ask(work.token, { waitMs: 60_000 }))).toBe('201')
  await work.end('completed')
  await device.disconnect()
})

test('a run that is being ended, a secret and a time out of bounds are refused', async () => {
  const { work, device, person } = await working()
  for (const body of [
    { waitMs: 0 },
    { waitMs: 86_400_001 },
    { waitMs: 1.5 },
    { waitMs: 1_000, answerMode: 'secret_input', secretRequest: secretRequest() },
  ])
    expect([body, outcomeOf(await ask(work.token, body))]).toEqual([body, '400 validation_error'])
  await server.ok(`/runs/${work.runId}/cancel`, { body: {}, token: person.token })
  expect(outcomeOf(await ask(work.token, { waitMs: 1_000 }))).toBe('409 hitl_stop_failed')
  await work.end('interrupted')
  await device.disconnect()
})
