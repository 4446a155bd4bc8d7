import { afterAll, beforeAll, expect, test } from 'vitest'
import { lockCompany, shownCompanies, unlockCompany } from '../../../control-plane/operator/companies.ts'
import { inTransaction } from '../../../control-plane/db/transaction.ts'
import type { Tx } from '../../../control-plane/db/open.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { TestServer, type Person } from '../../kit/server.ts'
import { workspaceCalls } from '../resources/workspaces-kit.ts'

// A company that its operator locked.

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

const { home } = workspaceCalls(() => server)
const operator = <T>(work: (tx: Tx) => Promise<T>) => inTransaction(server.database.root, work)
const started = (person: Person, agentId: string) =>
  server.ok(`/agents/${agentId}/runs`, { body: {}, token: person.token })
const runOf = (person: Person, id: string) => server.ok(`/runs/${id}`, { token: person.token })

test('its runs end, its wakes are declined, and its people go on to read and write until it is unlocked', async () => {
  const person = await home('admin')
  const { slug } = await server.ok('/workspaces', { token: person.token })
  const { world } = server
  const leaseMs = 90_000
  const device = await FakeDevice.connect(server, { token: person.token })
  const agent = await server.createAgent({}, person.token)
  const live = (await started(person, agent.id)).runPublicId
  const work = await device.take()
  const queued = (await started(person, agent.id)).runPublicId

  const locked = await operator((tx) => lockCompany(tx, world, { workspace: slug, leaseMs }))
  expect(locked).toMatchObject({ workspaces: [slug], isLocked: true })
  expect((await operator(shownCompanies)).companies).toContainEqual(locked)
  const ended = { status: 'cancelled', exitReason: 'billing_locked' }
  expect(await runOf(person, queued)).toMatchObject(ended)
  expect(await device.next('run.cancel')).toMatchObject({ runId: live, exitReason: 'billing_locked' })
  await work.end('billing_locked')
  expect(await runOf(person, live)).toMatchObject(ended)
  expect(await started(person, agent.id)).toMatchObject({ kind: 'declined' })
  expect((await server.ok('/runs?limit=1', { token: person.token })).data).toMatchObject([{ status: 'cancelled' }])
  // Repeating it changes nothing, and neither admins nor their settings unlock it.
  expect(await operator((tx) => lockCompany(tx, world, { workspace: slug, leaseMs }))).toEqual(locked)
  await server.ok(`/workspaces/${person.workspaceId}/resume-agents`, { method: 'POST', token: person.token })
  expect(await started(person, agent.id)).toMatchObject({ kind: 'declined' })
  await server.ok(`/agents/${agent.id}`, { method: 'PATCH', body: { description: 'Waits' }, token: person.token })

  expect(await operator((tx) => unlockCompany(tx, world, { workspace: slug }))).toEqual({ ...locked, isLocked: false })
  const again = (await started(person, agent.id)).runPublicId
  await (await device.take()).end()
  expect(await runOf(person, again)).toMatchObject({ status: 'succeeded' })
  await device.disconnect()
})

test('a workspace that nobody knows is named', async () => {
  await expect(operator((tx) => unlockCompany(tx, server.world, { workspace: 'nowhere' }))).rejects.toThrow(
    'There is no workspace nowhere.',
  )
})
