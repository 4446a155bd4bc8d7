import { afterEach, beforeEach, expect, test } from 'vitest'
import type { AgentRef } from '../../../shared/lib/ids.ts'
import { requestWakes, type RequestedWake } from '../../../control-plane/run/wakes/wakes.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'
import { made } from '../resources/tasks-kit.ts'

// Wakes that wait at one moment become runs in few transactions, each as it would by itself.

let server: TestServer
let sound: { id: AgentRef }
beforeEach(async () => {
  server = await TestServer.start()
  sound = await server.createAgent()
})
afterEach(() => server?.stop())

type Asked = Partial<RequestedWake> & { prompt: string }

async function request(asked: readonly Asked[]): Promise<void> {
  const { workspaceId, userId: requestedByRef } = server.owner
  const common = { workspaceId, agentRef: sound.id, requestedByRef, causedByUuid: null, wordsBy: [] }
  const wakes = asked.map((each) => ({ ...common, triggerSource: 'webhook' as const, ...each }))
  await server.database.root.transaction((tx) => requestWakes(tx, wakes, server.world))
  await server.plane.waker.sweep()
  await server.plane.dispatcher.idle()
}
interface Row {
  id: string
  prompt: string
  lease_state: string
}
const madeRuns = async (): Promise<Row[]> =>
  server.database
    .root('runs')
    .join('run_details', 'run_details.run_id', 'runs.id')
    .orderByRaw('runs.created_at, runs.id')
    .select('runs.id', 'run_details.prompt', 'runs.lease_state')
const promptsOf = (rows: readonly Row[]) => rows.map(({ prompt }) => prompt).toSorted()
function countBegun(): () => number {
  let count = 0
  server.database.root.client.on('query', ({ sql }: { sql: string }) => void (/^begin/i.test(sql) && count++))
  return () => count
}
const asked = (count: number) => Array.from({ length: count }, (_, at) => ({ prompt: `Do ${at}.` }))

test('runs of wakes that were taken together share the room that there is', async () => {
  const device = await FakeDevice.connect(server)
  await server.ok(`/devices/${device.identity.deviceId}`, { method: 'PATCH', body: { maxConcurrentRuns: 2 } })
  await device.next('config.changed')
  const begun = countBegun()
  await request(asked(12))
  const rows = await madeRuns()
  expect(promptsOf(rows)).toEqual(promptsOf(asked(12) as Row[]))
  expect(rows.filter(({ lease_state: state }) => state === 'offered')).toHaveLength(2)
  expect(begun()).toBeLessThan(12)
  const taken = [await device.take(), await device.take()]
  expect(new Set(taken.map(({ runId }) => runId)).size).toBe(2)
})

test('a wake that cannot become a run holds up none of those that were taken with it', async () => {
  const ill = await server.createAgent()
  const { root } = server.database
  await root('agents').where({ id: ill.id }).update({ status: 'nonsense' })
  await request([{ prompt: 'one' }, { prompt: 'ill', agentRef: ill.id }, { prompt: 'two' }])
  expect(promptsOf(await madeRuns())).toEqual(['one', 'two'])
  await root('agents').where({ id: ill.id }).update({ status: 'active' })
  await server.plane.waker.sweep()
  expect(promptsOf(await madeRuns())).toEqual(['ill', 'one', 'two'])
})

test('each run of one task is made by itself, so that the times tell their order', async () => {
  const task = await made(server, '/tasks', { title: 'Work' })
  const begun = countBegun()
  await request(asked(5).map((each) => ({ ...each, taskId: task.id })))
  expect(promptsOf(await madeRuns())).toEqual(promptsOf(asked(5) as Row[]))
  expect(begun()).toBeGreaterThanOrEqual(5)
})
