import { afterAll, beforeAll, expect, test } from 'vitest'
import { closeCodes } from '../../../shared/device/limits.ts'
import { lookEveryMs } from '../../../control-plane/link/takeover.ts'
import { enrol, FakeDevice } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'

// A hello that waits while its device goes on to another link, is changed, or connects anew.

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

/** A hello that is waiting, and a run that the device was given over a later link. */
async function overtaken() {
  const { token } = await server.addPerson('member')
  const identity = await enrol(server, { token })
  const device = () => server.database.root('devices').where({ public_id: identity.publicId })
  // A replica that is gone seems to have the device: it is asked for some seconds before the hello counts.
  await device().update({ replica_id: 'rep_gone', last_heartbeat_at: server.world.now() })
  const instance = crypto.randomUUID()
  // The hello looks at the row once more when the test says so, and not before.
  const sleep = server.world.sleep.bind(server.world)
  const looks = Promise.withResolvers<void>()
  server.world.sleep = (ms) => (ms === lookEveryMs ? looks.promise : sleep(ms))
  const goOn = () => {
    server.world.sleep = sleep
    looks.resolve()
  }
  const late = await FakeDevice.open(server, identity, { instance })
  const challenges = server.database.root('outbox').where({ topic: 'link.challenge', key: identity.publicId })
  await expect.poll(() => challenges.clone().select('seq')).toHaveLength(1)
  const take = async () => {
    await device().update({ replica_id: null })
    const later = await FakeDevice.connect(server, { identity, hello: { instance } })
    const runId = await server.startRun((await server.createAgent({}, token)).id, {}, token)
    const work = await later.take()
    expect(work.runId).toBe(runId)
    goOn()
    return { later, work }
  }
  const again = (hello: object) => FakeDevice.open(server, identity, { instance, ...hello })
  const leave = async () => {
    await device().update({ replica_id: null })
    goOn()
  }
  return { token, identity, late, take, again, leave }
}
const statusOf = async (runId: string) => (await server.ok(`/runs/${runId}`)).status as string

test('a hello that waited ends no run that the device was given meanwhile over another link', async () => {
  const { late, take, again } = await overtaken()
  const { work, later } = await take()
  await late.next('welcome')
  // Its daemon is on one of the two: the other one is closed, so that it says hello again.
  expect(await later.closed).toBe(closeCodes.going_away.code)
  expect(await statusOf(work.runId)).toBe('running')
  const runs = [{ runId: work.runId, fence: work.fence, state: 'live' as const, lastSeq: 0 }]
  const next = await again({ runs })
  expect((await next.next('welcome')).runs).toMatchObject([{ runId: work.runId, verdict: 'go_on' }])
  await next.disconnect()
})

test('a hello that names none of the runs that the device had before it ends them', async () => {
  const { late, take, again } = await overtaken()
  const { work } = await take()
  await late.next('welcome')
  const next = await again({ runs: [] })
  await next.next('welcome')
  expect(await server.ok(`/runs/${work.runId}`)).toMatchObject({ status: 'failed', exitReason: 'runner_lost' })
  await next.disconnect()
})

test('a change of the device that was made while its hello waited is told it', async () => {
  const { token, identity, late, leave } = await overtaken()
  await server.ok(`/devices/${identity.deviceId}`, { method: 'PATCH', body: { maxConcurrentRuns: 7 }, token })
  await leave()
  await late.next('welcome')
  expect(await late.next('config.changed')).toMatchObject({ capacity: 7 })
  await late.disconnect()
})

test('a hello of a connection that was replaced while it waited is refused', async () => {
  const { token, identity, late, leave } = await overtaken()
  const fresh = await enrol(server, { token, body: { publicId: identity.publicId } })
  await leave()
  expect(await late.closed).toBe(closeCodes.revoked.code)
  expect(late.pending).toEqual([])
  await (await FakeDevice.connect(server, { identity: fresh })).disconnect()
})

test('a device that connects anew is welcome before the replica that has its earlier link hears of it', async () => {
  const { token } = await server.addPerson('member')
  const first = await enrol(server, { token })
  const earlier = await FakeDevice.connect(server, { identity: first })
  const other = await enrol(server, { token })
  // What connecting anew writes, without the message about it.
  const devices = () => server.database.root('devices')
  await devices().where({ device_id: first.deviceId }).update({ removed_at: server.world.now() })
  await devices().where({ device_id: other.deviceId }).update({ public_id: first.publicId })
  const later = await FakeDevice.connect(server, { identity: { ...other, publicId: first.publicId } })
  expect(await earlier.closed).toBe(closeCodes.revoked.code)
  const { devices: listed } = await server.ok('/devices', { token })
  expect(listed).toMatchObject([{ deviceId: other.deviceId, liveness: { status: 'connected' } }])
  await later.disconnect()
})
