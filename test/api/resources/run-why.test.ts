import { afterAll, beforeAll, expect, test } from 'vitest'
import { FakeDevice } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'
import { made } from './tasks-kit.ts'

// Why a run is as it is, beside the reasons for which it waits (`test/api/dispatch/reasons.test.ts`).

let server: TestServer
let device: FakeDevice
let agentId: string
beforeAll(async () => {
  server = await TestServer.start()
  device = await FakeDevice.connect(server)
  agentId = (await server.createAgent()).id
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
})

const hour = 3_600_000
const whyOf = (runId: string) => server.ok(`/runs/${runId}/why`)
const start = (body = {}) => server.startRun(agentId, body)

test('a run that is offered, works, and has succeeded', async () => {
  const runId = await start()
  expect(await whyOf(runId)).toMatchObject({
    object: 'why',
    run: runId,
    state: 'waits',
    reason: null,
    nextAt: expect.any(String),
  })
  const run = await device.take()
  const why = await whyOf(runId)
  expect(why).toMatchObject({ state: 'works', reason: null, command: `svc run watch ${runId}` })
  expect(why.since).toBe((await server.ok(`/runs/${runId}`)).startedAt)
  await run.end()
  expect(await whyOf(runId)).toMatchObject({ state: 'ended', reason: 'completed', because: 'It has succeeded.' })
})

test('a run that has failed is retried, and says which one goes on', async () => {
  const runId = await start()
  await (await device.take()).end('error', { message: 'The program is not there.' })
  const command = `svc run retry ${runId}`
  expect(await whyOf(runId)).toMatchObject({
    state: 'ended',
    reason: 'error',
    because: 'The program is not there.',
    command,
  })
  const next = await server.ok(`/runs/${runId}/retry`, { body: {} })
  await (await device.take()).end()
  expect(await whyOf(runId)).toMatchObject({ command: `svc why ${next.runId}` })
})

test('a run that asks a person names the command that answers', async () => {
  const runId = await start()
  const run = await device.take()
  const { question } = await made(server, '/questions', { prompt: 'Which region?' }, run.token)
  const why = await whyOf(runId)
  expect(why).toMatchObject({ state: 'asks', reason: 'question', because: 'It waits for a person: Which region?' })
  expect(why.command).toBe(`svc question answer ${question.id} "..."`)
  await run.end('question_asked')
  expect(await whyOf(runId)).toEqual(why)
})

test('a run whose device is away tells since when, and when it is given up', async () => {
  const runId = await start()
  const run = await device.take()
  await device.beat()
  server.world.advance(hour / 4)
  const why = await whyOf(runId)
  expect(why).toMatchObject({ state: 'works', reason: 'device_away', command: 'svc device status' })
  const since = Date.parse(why.since)
  expect(server.world.now() - since).toBeGreaterThanOrEqual(hour / 4)
  expect(Date.parse(why.nextAt)).toBeGreaterThan(server.world.now())
  await device.beat()
  await run.end()
})
