import { afterEach, beforeEach, expect, test } from 'vitest'
import { FakeDevice } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'
import { made } from '../resources/tasks-kit.ts'

// What devices accept at one moment is claimed together, each as it would be by itself.

let server: TestServer
beforeEach(async () => {
  server = await TestServer.start()
})
afterEach(() => server?.stop())

async function offered(device: FakeDevice, count: number) {
  const offers = []
  while (offers.length < count) offers.push(await device.next('run.offer'))
  return offers.map(({ runId, fence }) => ({ runId, fence }))
}

async function deviceFor(count: number): Promise<FakeDevice> {
  const device = await FakeDevice.connect(server)
  await server.ok(`/devices/${device.identity.deviceId}`, { method: 'PATCH', body: { maxConcurrentRuns: count } })
  await device.next('config.changed')
  return device
}

function countClaims(): () => number {
  const claims: string[] = []
  server.database.root.client.on('query', ({ sql }: { sql: string }) => {
    if (/update runs set .*started_at/s.test(sql)) claims.push(sql)
  })
  return () => claims.length
}

test('runs without a task are claimed by one statement, and one that is no longer offered is not', async () => {
  const agent = await server.createAgent()
  const device = await deviceFor(4)
  for (let count = 0; count < 4; count++) await server.startRun(agent.id)
  const offers = await offered(device, 4)
  const [gone, ...others] = offers
  await server.ok(`/runs/${gone!.runId}/cancel`, { body: {} })
  const claims = countClaims()
  for (const run of offers) device.send({ type: 'run.accepted', ...run })
  for (const run of others) expect(await device.next('run.start')).toMatchObject(run)
  const withdrawn = await device.next('run.withdrawn')
  expect(withdrawn).toMatchObject({ runId: gone!.runId })
  // The one that is gone is tried once more by itself.
  expect(claims()).toBe(2)
  for (const { runId } of others) expect(await server.ok(`/runs/${runId}`)).toMatchObject({ status: 'running' })
})

test('runs on tasks are claimed together with all that their starts change', async () => {
  const agent = await server.createAgent()
  const device = await deviceFor(4)
  const tasks = [0, 1, 2].map((at) =>
    made(server, '/tasks', { title: `Task ${at}`, assignee: { type: 'agent', id: agent.id } }),
  )
  const ids = (await Promise.all(tasks)).map((task) => task.id as string)
  const offers = await offered(device, 3)
  const claims = countClaims()
  // One is accepted twice, which starts it once.
  for (const run of [...offers, offers[0]!]) device.send({ type: 'run.accepted', ...run })
  for (let count = 0; count < 4; count++) await device.next('run.start')
  expect(claims()).toBe(1)
  for (const id of ids) {
    expect(await server.ok(`/tasks/${id}`)).toMatchObject({ status: 'in_progress' })
    const started = await server.database.root('task_activity').where({ task_id: id, kind: 'run.started' })
    expect(started).toHaveLength(1)
  }
})
