import { afterEach, beforeEach, expect, test } from 'vitest'
import { admitDevices, isIdle, type ToAdmit } from '../../../control-plane/link/hello.ts'
import { findDevice } from '../../../control-plane/resources/devices/store.ts'
import { idFrom, type RunId } from '../../../shared/lib/ids.ts'
import { enrol, FakeDevice, type Identity } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'

// Devices that connect at one moment, as when their server returns, are admitted together, each as it would be by itself.

let server: TestServer
beforeEach(async () => {
  server = await TestServer.start()
})
afterEach(() => server?.stop())

const enrolled = (count: number) => Promise.all(Array.from({ length: count }, () => enrol(server)))

/** Lets no transaction begin until so many devices were asked for, and counts those that record links. */
function watchAdmissions(devices: number): () => number {
  const { root } = server.database
  const areAsked = Promise.withResolvers<void>()
  const admitting = new Set<unknown>()
  let asked = 0
  root.client.on('query', ({ sql, __knexTxId: id }: { sql: string; __knexTxId?: string }) => {
    if (/from runs where ended_at is null and device = /.test(sql) && ++asked === devices) areAsked.resolve()
    if (/update devices set .*link_instance/s.test(sql)) admitting.add(id)
  })
  const transaction = root.transaction.bind(root)
  Object.defineProperty(root, 'transaction', {
    value: async (...given: Parameters<typeof transaction>) => {
      await areAsked.promise
      return transaction(...given)
    },
  })
  return () => admitting.size
}

test('devices without runs are admitted in few transactions', async () => {
  const identities = await enrolled(12)
  const admissions = watchAdmissions(12)
  const devices = await Promise.all(identities.map((identity) => FakeDevice.open(server, identity)))
  for (const [at, device] of devices.entries())
    expect(await device.next('welcome')).toMatchObject({ deviceId: identities[at]!.deviceId })
  expect(admissions()).toBeGreaterThan(0)
  expect(admissions()).toBeLessThan(6)
  const linked = await server.database.root('devices').whereNotNull('replica_id')
  expect(linked).toHaveLength(12)
})

test('one that was removed meanwhile is refused, and the others are admitted', async () => {
  const identities = await enrolled(3)
  const { root } = server.database
  const devices = []
  for (const { deviceId } of identities) devices.push((await findDevice(root, idFrom(deviceId)))!)
  await root('devices').where({ device_id: identities[1]!.deviceId }).update({ removed_at: 1 })
  const toAdmit = devices.map((device, at) => ({
    device,
    hello: helloOf(identities[at]!),
    before: [],
    linkId: `link-${at}`,
  }))
  const { world } = server
  const [first, ...others] = toAdmit
  const facts = { replicaId: 'rep_1', world, heartbeatMs: 1, leaseMs: 2 }
  const admitted = await admitDevices(root, [first!, ...others], facts)
  expect(admitted.map((each) => each?.welcome.deviceId ?? null)).toEqual([
    identities[0]!.deviceId,
    null,
    identities[2]!.deviceId,
  ])
})

test('a device with runs waits for no other', () => {
  const idle = { hello: helloOf({ publicId: 'dev_1', token: 't' }), before: [] }
  expect(isIdle(idle)).toBe(true)
  const runs = [{ runId: idFrom<RunId>('run_1'), fence: 1, state: 'live' as const, lastSeq: 0 }]
  expect(isIdle({ ...idle, hello: { ...idle.hello, runs } })).toBe(false)
})

const helloOf = ({ publicId, token }: Pick<Identity, 'publicId' | 'token'>): ToAdmit['hello'] => ({
  type: 'hello',
  protocol: 1,
  token,
  publicId: idFrom(publicId),
  instance: crypto.randomUUID(),
  version: '0.1.0',
  platform: 'linux',
  hostname: 'laptop',
  claimState: { accepting: true, reason: null, message: null, activeRuns: 0 },
  runs: [],
})
