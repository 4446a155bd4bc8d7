import { afterAll, beforeAll, expect, test } from 'vitest'
import { enrol, FakeDevice } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'

/** A hello that waits while its device has gone on to another link. */

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
  const late = await FakeDevice.open(server, identity, { instance })
  const challenges = server.database.root('outbox').where({ topic: 'link.challenge', key: identity.publicId })
  await expect.poll(() => challenges.clone().select('seq')).toHaveLength(1)
  const take = async () => {
    await device().update({ replica_id: null })
    const later = await FakeDevice.connect(server, { identity, hello: { instance } })
    const runId = await server.startRun((await server.createAgent({}, token)).id, {}, token)
    const work = await later.take()
    expect(work.runId).toBe(runId)
    return { later, work }
  }
  const again = (hello: object) => FakeDevice.open(server, identity, { instance, ...hello })
  return { late, take, again }
}
const statusOf = async (runId: string) => (await server.ok(`/runs/${runId}`)).status as string

test('a hello that waited ends no run that the device was given meanwhile over another link', async () => {
  const { late, take, again } = await overtaken()
  const { work } = await take()
  await late.next('welcome')
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
