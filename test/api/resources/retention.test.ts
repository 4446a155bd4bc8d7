import { afterAll, beforeAll, expect, test } from 'vitest'
import { FakeDevice } from '../../kit/fake-device.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { base64, upload } from './files-kit.ts'

// What people and agents see once what is old has gone by its age.

const day = 86_400_000
let server: TestServer
let device: FakeDevice
beforeAll(async () => {
  const settings = { SVC_KEEP_RUNS_DAYS: '30', SVC_KEEP_TASK_HISTORY_DAYS: '30', SVC_KEEP_FILE_VERSIONS_DAYS: '30' }
  server = await TestServer.start({ settings })
  device = await FakeDevice.connect(server)
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
})

const keyed = () => ({ 'idempotency-key': crypto.randomUUID() })

test('old runs, history and versions go, and what names them is shown as before', async () => {
  const agent = await server.createAgent()
  const task = await server.ok('/tasks', { body: { title: 'Shop', assignee: agent.id }, headers: keyed() })
  const worked = await device.take()
  await worked.events({ kind: 'usage', data: { costUsd: '0.25', inputTokens: 100 } })
  await server.ok(`/tasks/${task.id}/comments`, { body: { content: 'Done so far.' }, token: worked.token })
  await worked.end()
  await server.ok(`/tasks/${task.id}/transition`, { body: { status: 'done' }, headers: keyed() })
  const alone = await server.startRun(agent.id)
  await (await device.take()).end()
  const file = await upload(server, { content: 'one' })
  await server.ok(`/files/${file.id}/replace`, { body: { contentBase64: base64('two') } })

  const since = new Date(server.world.now() - day).toISOString()
  const until = new Date(server.world.now() + day).toISOString()
  const costs = async () =>
    Promise.all(['agent', 'task', 'day'].map((by) => server.ok(`/costs?by=${by}&since=${since}&until=${until}`)))
  const [spent, runId] = [await costs(), worked.runId]
  expect(spent[0].total).toMatchObject({ costUsd: '0.25', runs: 2 })
  expect((await server.ok(`/tasks/${task.id}/activity`)).data.length).toBeGreaterThan(0)

  server.world.advance(29 * day)
  await server.plane.sweeper.runAll()
  expect((await server.ok(`/runs/${runId}`)).status).toBe('succeeded')
  server.world.advance(2 * day)
  await server.plane.sweeper.runAll()
  // The events go in the next round.
  await server.plane.sweeper.runAll()

  for (const id of [runId, alone])
    for (const path of ['', '/events', '/cost', '/why'])
      expect([path, outcomeOf(await server.call(`/runs/${id}${path}`))]).toEqual([path, '404 resource_not_found'])
  expect((await server.ok('/runs')).data).toEqual([])
  expect(await costs()).toEqual(spent)
  expect((await server.ok(`/tasks/${task.id}/activity`)).data).toEqual([])
  expect(await server.ok(`/tasks/${task.id}`)).toMatchObject({ status: 'done', title: 'Shop' })
  expect((await server.ok(`/tasks/${task.id}/comments`)).data).toMatchObject([{ body: 'Done so far.' }])
  for (const list of ['/agents', '/approvals', '/questions', '/conversations', '/tasks']) await server.ok(list)
  expect(await server.database.root('run_frames')).toEqual([])

  const { data } = await server.ok(`/files/${file.id}/revisions`)
  expect(data.map(({ version }: { version: number }) => version)).toEqual([2, 1])
  const download = (id: string) => server.call(`/files/${file.id}/revisions/${id}/download`)
  expect(outcomeOf(await download(data[1].id))).toBe('404 resource_not_found')
  expect((await server.ok(`/files/${file.id}?expand[]=content`)).content).toBe('two')
  expect(await server.database.root('blobs')).toHaveLength(1)

  // The agent goes on with a task that is opened again, in a session of its own.
  await server.ok(`/tasks/${task.id}/transition`, { body: { status: 'open', reason: 'More.' }, headers: keyed() })
  await server.ok(`/tasks/${task.id}/comments`, { body: { content: `@${agent.handle} go on` }, headers: keyed() })
  const again = await device.take()
  expect(again.runId).not.toBe(runId)
  await again.end()
})
