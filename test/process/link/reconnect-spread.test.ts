import { afterAll, beforeAll, expect, test } from 'vitest'
import { enrol, FakeDevice } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

test('a link is told, in its welcome and with each heartbeat, over how long all spread their return', async () => {
  const claimState = { accepting: true, reason: null, message: null, activeRuns: 0 }
  const told = async (device: FakeDevice) => {
    device.send({ type: 'heartbeat', claimState })
    return (await device.next('heartbeat.ack')).reconnectSpreadMs!
  }
  const first = await FakeDevice.open(server, await enrol(server))
  const alone = (await first.next('welcome')).reconnectSpreadMs!
  expect(alone).toBeGreaterThan(0)
  const second = await FakeDevice.open(server, await enrol(server))
  const both = (await second.next('welcome')).reconnectSpreadMs!
  expect(both).toBe(2 * alone)
  expect(await told(first)).toBe(both)
  await second.disconnect()
  await expect.poll(() => told(first)).toBe(alone)
})
