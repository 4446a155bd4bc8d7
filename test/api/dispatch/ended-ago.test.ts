import { afterAll, beforeAll, expect, test } from 'vitest'
import { FakeDevice } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'

// When a run ended of which the server hears late, as after an outage.

let server: TestServer
let device: FakeDevice
beforeAll(async () => {
  server = await TestServer.start()
  device = await FakeDevice.connect(server)
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
})

const minute = 60_000

/** A run that has been at work for `forMs`, and how it ended as its device tells it. */
async function endedAfter(
  forMs: number,
  since: { endedAgoMs?: number },
): Promise<{ startedMs: number; endedMs: number }> {
  const runId = await server.startRun((await server.createAgent()).id)
  const run = await device.take()
  await run.events({ kind: 'ended', data: { exitReason: 'completed', exitCode: 0, signal: null } })
  server.world.advance(forMs)
  await device.beat()
  device.send({ ...run.ending('completed'), ...since })
  await device.next('run.closed')
  const shown = await server.ok(`/runs/${runId}`)
  expect(shown.status).toBe('succeeded')
  expect(shown.terminalAt ?? shown.completedAt).toBe(shown.completedAt)
  return { startedMs: Date.parse(shown.startedAt), endedMs: Date.parse(shown.completedAt) }
}

test('is when it ended on its device, as the server reckons', async () => {
  const { endedMs } = await endedAfter(10 * minute, { endedAgoMs: 3 * minute })
  const ago = server.world.now() - endedMs
  expect(ago).toBeGreaterThanOrEqual(3 * minute)
  expect(ago).toBeLessThan(3 * minute + 10_000)
})

test('is now where the device does not say', async () => {
  const { endedMs } = await endedAfter(minute, {})
  expect(server.world.now() - endedMs).toBeLessThan(10_000)
})

test('is told with the steps of the run, of which a device may say what it likes', async () => {
  for (const endedAgoMs of [5_000, Number.MAX_SAFE_INTEGER]) {
    const runId = await server.startRun((await server.createAgent()).id)
    const run = await device.take()
    await run.events({ kind: 'ended', data: { exitReason: 'completed', exitCode: 0, signal: null } })
    const ending = run.ending('completed')
    if (ending.type !== 'run.ended') throw new Error('this is no ending')
    const spans = { launched: 12.5, ended: 40, reported: 41 }
    device.send({ ...ending, report: { ...ending.report, spans }, endedAgoMs })
    await device.next('run.closed')
    const { timings } = await server.ok(`/runs/${runId}`)
    expect(timings.launchedMs).toBe(timings.offeredMs + 12.5)
    expect(timings.endedMs).toBe(timings.offeredMs + 40)
    expect(timings.reportedMs).toBeGreaterThanOrEqual(timings.offeredMs + 5_041)
    expect(timings.storedMs).toBeGreaterThanOrEqual(timings.claimedMs)
    expect(timings.wallMs).toBeNull()
  }
})

test('is never before it started, nor in the future, whatever the device says', async () => {
  for (const endedAgoMs of [10 * minute, Number.MAX_SAFE_INTEGER]) {
    const { startedMs, endedMs } = await endedAfter(minute, { endedAgoMs })
    expect(endedMs).toBe(startedMs)
  }
})
