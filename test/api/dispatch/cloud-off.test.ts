import { afterAll, beforeAll, expect, test } from 'vitest'
import { inTransaction, publish } from '../../../control-plane/db/transaction.ts'
import { startEngineless } from '../../kit/engineless.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import type { TestServer } from '../../kit/server.ts'

// Runs of the cloud where the workspace has turned them off.

let server: TestServer
beforeAll(async () => {
  server = await startEngineless()
})
afterAll(() => server.stop())

const setCloud = (cloudEnabled: boolean) =>
  server.ok(`/workspaces/${server.owner.workspaceId}`, { method: 'PATCH', body: { cloudEnabled } })
const wake = (agentId: string) => server.ok(`/agents/${agentId}/runs`, { body: { prompt: 'Build' } })

test('what waits for a sandbox ends, wakes are declined, and what is of devices goes on', async () => {
  const cloudy = await server.createAgent({ environment: 'cloud', harness: 'command', command: 'true' })
  const local = await server.createAgent({ name: 'Local' })
  const { audit } = await server.ok(`/agents/${cloudy.id}/audit`)
  expect(audit.map(({ code, message }: { code: string; message: string }) => `${code}: ${message}`)).toContain(
    'cloud_sandbox: Its runs get sandboxes of the size small, 2 GiB, from the image svc-sandbox.',
  )
  const [inCloud, onDevice] = [await wake(cloudy.id), await wake(local.id)]
  expect(await server.ok(`/runs/${inCloud.runPublicId}`)).toMatchObject({ status: 'queued', sandbox: null })
  expect((await setCloud(false)).cloudEnabled).toBe(false)
  expect(await server.ok(`/runs/${inCloud.runPublicId}`)).toMatchObject({
    status: 'cancelled',
    exitReason: 'cloud_disabled',
    errorMessage: 'Cloud runs were turned off in this workspace.',
  })
  expect(await wake(cloudy.id)).toMatchObject({ kind: 'declined' })
  const [last] = (await server.ok(`/runs?agent=${cloudy.id}`)).data
  expect(last.status).toBe('cancelled')
  expect(await server.ok(`/runs/${last.id}`)).toMatchObject({
    exitReason: 'cloud_disabled',
    errorMessage: 'Cloud runs are off in this workspace.',
  })
  const codes = (await server.ok(`/agents/${cloudy.id}/audit`)).audit.map(({ code }: { code: string }) => code)
  expect(codes).toContain('cloud_disabled')
  const device = await FakeDevice.connect(server, { token: server.owner.token })
  await (await device.take()).end()
  expect(await server.ok(`/runs/${onDevice.runPublicId}`)).toMatchObject({ status: 'succeeded' })
  await device.disconnect()
  await setCloud(true)
  expect(await wake(cloudy.id)).toMatchObject({ kind: 'pending', gateReason: 'no_ready_route' })
})

test('a run that was being queued meanwhile ends, too', async () => {
  const cloudy = await server.createAgent({ name: 'Late', environment: 'cloud', harness: 'command', command: 'true' })
  const { runPublicId } = await wake(cloudy.id)
  const { root } = server.database
  // As if the wake had been admitted before and were committed after it.
  await inTransaction(root, async (tx) => {
    await tx('workspaces').update({ cloud_enabled: 0 })
    await publish(tx, { topic: 'run.queued', key: runPublicId, at: server.world.now() })
  })
  await expect.poll(async () => (await server.ok(`/runs/${runPublicId}`)).exitReason).toBe('cloud_disabled')
  await root('workspaces').update({ cloud_enabled: 1 })
})
