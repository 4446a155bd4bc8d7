import { afterEach, beforeEach, expect, test } from 'vitest'
import { closeCodes } from '../../../shared/device/limits.ts'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'

// A row that cannot be read, as it may be after a fault of the disk, harms what belongs to it and nothing else.

let server: TestServer
beforeEach(async () => {
  server = await TestServer.start()
})
afterEach(() => server?.stop())

const hour = 3_600_000
const statusOf = async (runId: string) => (await server.ok(`/runs/${runId}`)).status as string
/** The agent is read when its runs end, for its budget. */
async function harm(agent: { id: string }, status = 'nonsense'): Promise<void> {
  await server.database.root('agents').where({ id: agent.id }).update({ status, monthly_budget_cents: 1_000_000 })
}
const heal = (agent: { id: string }) => harm(agent, 'active')

/** A device with a run of the agent at work. */
async function atWork(agent: { id: string }): Promise<{ device: FakeDevice; run: FakeRun }> {
  const device = await FakeDevice.connect(server)
  await server.ok(`/devices/${device.identity.deviceId}`, { method: 'PATCH', body: { maxConcurrentRuns: 1 } })
  await device.next('config.changed')
  await server.startRun(agent.id)
  return { device, run: await device.take() }
}
const text = (said: string) => ({ kind: 'text', data: { text: said } }) as const

test('what other devices send is stored while the ending of a run cannot be', async () => {
  const [ill, sound] = [await server.createAgent(), await server.createAgent()]
  const [one, two] = [await atWork(ill), await atWork(sound)]
  await harm(ill)
  one.device.send(one.run.ending('completed'))
  await two.run.events(text('one'))
  expect(await one.device.closed).toBe(closeCodes.going_away.code)
  await two.run.events(text('two'))
  await two.run.end()
  expect(await statusOf(two.run.runId)).toBe('succeeded')

  // Nothing of it is lost: told again once it can be stored, it is.
  await heal(ill)
  expect(await statusOf(one.run.runId)).toBe('running')
  const { runId, fence } = one.run
  const { identity } = one.device
  const again = await FakeDevice.connect(server, {
    identity,
    hello: { runs: [{ runId, fence, state: 'ended', lastSeq: 0 }] },
  })
  again.send(one.run.ending('completed'))
  await again.next('run.closed')
  expect(await statusOf(runId)).toBe('succeeded')
})

test('runs are offered beside one whose spec cannot be read', async () => {
  const agent = await server.createAgent()
  const runIds = [await server.startRun(agent.id), await server.startRun(agent.id), await server.startRun(agent.id)]
  await server.database.root('run_details').where({ run_id: runIds[1] }).update({ spec: '{}' })
  const device = await FakeDevice.connect(server)
  const taken = [await device.take(), await device.take()]
  expect(new Set(taken.map((run) => run.runId))).toEqual(new Set([runIds[0], runIds[2]]))
  expect(await statusOf(runIds[1]!)).toBe('queued')
})

test('runs that waited too long end beside one that cannot be ended', async () => {
  const [ill, sound] = [await server.createAgent(), await server.createAgent()]
  const first = await server.startRun(ill.id)
  const second = await server.startRun(sound.id)
  await harm(ill)
  server.world.advance(25 * hour)
  await server.plane.sweeper.runAll()
  expect(await statusOf(second)).toBe('failed')
  await heal(ill)
  expect(await statusOf(first)).toBe('queued')
})

test('runs whose device is gone end beside one that cannot be ended', async () => {
  const [ill, sound] = [await server.createAgent(), await server.createAgent()]
  const [one, two] = [await atWork(ill), await atWork(sound)]
  await harm(ill)
  await one.device.disconnect()
  await two.device.disconnect()
  server.world.advance(25 * hour)
  await server.plane.sweeper.runAll()
  expect(await statusOf(two.run.runId)).toBe('failed')
  await heal(ill)
  expect(await statusOf(one.run.runId)).toBe('running')
})
