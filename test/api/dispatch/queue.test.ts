import { afterEach, beforeEach, expect, test } from 'vitest'
import { linkLimits } from '../../../shared/device/limits.ts'
import { enrol, FakeDevice } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'

// Many runs that wait, and devices that get room.

let server: TestServer
beforeEach(async () => {
  server = await TestServer.start()
})
afterEach(() => server?.stop())

async function wakeMany(agent: { id: string }, count: number): Promise<string[]> {
  const runIds: string[] = []
  for (let i = 0; i < count; i++) {
    // Runs of one millisecond have no order.
    server.world.advance(1)
    runIds.push(await server.startRun(agent.id))
  }
  return runIds
}
const allow = (device: FakeDevice, maxConcurrentRuns: number) =>
  server.ok(`/devices/${device.identity.deviceId}`, { method: 'PATCH', body: { maxConcurrentRuns } })

test('runs that wait for a device which is away hold up nobody behind them, however many they are', async () => {
  const { publicId: deviceId } = await enrol(server)
  const folder = await server.ok('/folders', { body: { displayName: 'away', rootPath: '/srv/away', deviceId } })
  await wakeMany(await server.createAgent({ defaultFolderId: folder.shortId }), 250)

  const device = await FakeDevice.connect(server)
  await allow(device, 1)
  const [first, second, third] = await wakeMany(await server.createAgent(), 3)
  for (const runId of [first, second, third]) {
    const run = await device.take()
    expect(run.runId).toBe(runId)
    await run.end()
  }
})

test('a device that connects is given what waits, the oldest first, as much as it has room for', async () => {
  const runIds = await wakeMany(await server.createAgent(), 25)
  const identity = await enrol(server)
  await server.ok(`/devices/${identity.deviceId}`, { method: 'PATCH', body: { maxConcurrentRuns: 10 } })
  const device = await FakeDevice.connect(server, { identity })
  const runs = []
  for (let i = 0; i < 10; i++) runs.push(await device.take())
  expect(runs.map((run) => run.runId)).toEqual(runIds.slice(0, 10))
  expect(device.pending).not.toContain('run.offer')
  await runs[3]!.end()
  expect((await device.take()).runId).toBe(runIds[10])
  expect(device.pending).not.toContain('run.offer')
})

test('a run that waits for a harness goes when the device says that somebody signed in', async () => {
  const device = await FakeDevice.connect(server)
  const tell = (signedIn: boolean) => {
    const harnesses = { claude: { installed: true, version: '2', signedIn, message: null } }
    device.send({ type: 'readiness', providerReadiness: { harnesses }, capturedAt: server.world.now() })
  }
  tell(false)
  await expect
    .poll(async () => (await server.ok('/devices')).devices[0].providerReadiness)
    .toMatchObject({ harnesses: { claude: { signedIn: false } } })
  const runId = await server.startRun((await server.createAgent({ harness: 'claude', command: null })).id)
  expect(device.pending).not.toContain('run.offer')
  tell(true)
  expect((await device.take()).runId).toBe(runId)
})

test('a run that waits for a harness that is too old says what the device says of it, and goes when it was updated', async () => {
  const device = await FakeDevice.connect(server)
  const message = 'codex 0.20.0 is too old: svc needs 0.100.0 or newer; update it with: npm install'
  const tell = (codex: object) => {
    const state = { installed: true, version: '0.20.0', signedIn: null, message: null, ...codex }
    const providerReadiness = { harnesses: { codex: state } }
    device.send({ type: 'readiness', providerReadiness, capturedAt: server.world.now() })
  }
  tell({ tooOld: true, message })
  await expect
    .poll(async () => (await server.ok('/devices')).devices[0].providerReadiness)
    .toMatchObject({ harnesses: { codex: { tooOld: true, message } } })
  const { displayName } = (await server.ok('/devices')).devices[0]
  const agent = await server.createAgent({ harness: 'codex', command: null })
  const runId = await server.startRun(agent.id)
  expect(device.pending).not.toContain('run.offer')
  const run = await server.ok(`/runs/${runId}`)
  expect(run).toMatchObject({ status: 'queued', gateReason: 'no_ready_route' })
  expect(run.gateDescription).toContain(`${displayName}: ${message}`)
  const { data } = await server.ok('/runs?status=queued')
  expect(data).toContainEqual(expect.objectContaining({ id: runId, gateDescription: run.gateDescription }))
  tell({ version: '0.100.0' })
  expect((await device.take()).runId).toBe(runId)
})

test('a run that waits for a device whose lease ended while its link stayed open goes with the next heartbeat', async () => {
  // A sweep would offer it, too, but later.
  await server.plane.sweeper.stop()
  const device = await FakeDevice.connect(server)
  server.world.advance(linkLimits.leaseMs + 1)
  const runId = await server.startRun((await server.createAgent()).id)
  await server.plane.dispatcher.idle()
  expect(device.pending).not.toContain('run.offer')
  await device.beat()
  expect((await device.take()).runId).toBe(runId)
})
