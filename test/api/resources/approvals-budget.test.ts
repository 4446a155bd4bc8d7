import { afterAll, beforeAll, expect, test } from 'vitest'
import { FakeDevice } from '../../kit/fake-device.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'

let server: TestServer
let admin: Person, member: Person
beforeAll(async () => {
  server = await TestServer.start()
  admin = await server.addPerson('admin')
  member = await server.addPerson('member')
})
afterAll(() => server.stop())

let keys = 0
const post = (path: string, body: unknown) =>
  server.call(path, { body, headers: { 'Idempotency-Key': `key-${keys++}` } })

const breaches = async (status = 'open') =>
  (await server.ok(`/approvals?trigger=budget_breach&status=${status}`)).data as Record<string, never>[]

/** Lets the agent run once, at this cost. */
async function spend(agentId: string, costUsd: string): Promise<string> {
  const device = await FakeDevice.connect(server)
  const runId = await server.startRun(agentId)
  const run = await device.take()
  await run.end('completed', { usage: { inputTokens: 1, outputTokens: 1, costUsd } })
  await device.disconnect()
  return runId
}

const setBudget = (agentId: string, monthlyBudgetCents: number | null) =>
  server.ok(`/agents/${agentId}/config`, { method: 'PUT', body: { config: { runtime: { monthlyBudgetCents } } } })

test('a budget that is spent is a breach that no person resolves, until it is raised', async () => {
  const agent = await server.createAgent({ name: 'Spender' })
  await setBudget(agent.id, 100)
  await spend(agent.id, '0.40')
  expect(await breaches()).toEqual([])
  await spend(agent.id, '0.70')
  const [breach] = await breaches()
  expect(breach).toMatchObject({
    trigger: 'budget_breach',
    runId: null,
    requestedBy: { type: 'system', id: null },
    assignedTo: { type: 'system', id: null },
    gatedThing: { kind: 'budget', name: 'agent:@spender' },
  })
  expect(breach!['prompt']).toContain('$1.10 of $1.00')
  const { id } = breach!
  for (const verb of ['approve', 'reject'])
    expect(outcomeOf(await post(`/approvals/${id}/${verb}`, {}))).toBe('409 user_cannot_resolve_system_approval')
  const assigned = { assignedTo: { type: 'user', id: admin.userId }, reason: 'please' }
  expect(outcomeOf(await post(`/approvals/${id}/assign`, assigned))).toBe('409 approval_not_user_assignable')
  expect(await server.ok(`/agents/${agent.id}/runs`, { body: {} })).toMatchObject({ reason: 'budget_blocked' })
  await setBudget(agent.id, 105)
  expect(await breaches()).toMatchObject([{ id }])
  await setBudget(agent.id, 200)
  expect(await server.ok(`/approvals/${id}`)).toMatchObject({
    status: 'resolved',
    result: { outcome: 'approve', reason: 'budget_raised' },
    resolvedBy: { type: 'system', id: null },
  })
  await setBudget(agent.id, 110)
  expect(await breaches()).toHaveLength(1)
  await setBudget(agent.id, null)
  expect(await breaches()).toEqual([])
})

test('the workspace has a breach of its own, and a new month ends it', async () => {
  const agent = await server.createAgent()
  await server.ok(`/workspaces/${server.owner.workspaceId}`, { method: 'PATCH', body: { monthlyBudgetCents: 1_000 } })
  await spend(agent.id, '9.00')
  expect(await breaches()).toMatchObject([{ gatedThing: { name: 'workspace' } }])
  await server.plane.sweeper.runAll()
  expect(await breaches()).toHaveLength(1)
  server.world.advance(32 * 24 * 3_600_000)
  await server.plane.sweeper.runAll()
  expect(await breaches()).toEqual([])
})

test('a run that used up what one run may use leaves a breach that ended with it', async () => {
  const agent = await server.createAgent()
  const device = await FakeDevice.connect(server)
  const runId = await server.startRun(agent.id)
  await (await device.take()).end('budget_exceeded')
  await device.disconnect()
  expect(await breaches('resolved')).toContainEqual(
    expect.objectContaining({
      runId,
      result: { outcome: 'reject', reason: 'run_terminated' },
      resolvedBy: { type: 'system', id: null },
    }),
  )
})

test('who does not see a private agent learns neither that its budget is spent nor that a run used up its own', async () => {
  const agent = await server.createAgent({ name: 'Mole', visibility: 'private' })
  await setBudget(agent.id, 100)
  const runId = await spend(agent.id, '1.10')
  const [ofAgent] = await breaches()
  const device = await FakeDevice.connect(server)
  await setBudget(agent.id, null)
  const ended = await server.startRun(agent.id)
  await (await device.take()).end('budget_exceeded')
  await device.disconnect()
  const [ofRun] = (await server.ok(`/approvals?runId=${ended}`)).data
  expect(runId).not.toBe(ended)
  for (const { id, requestedBy } of [ofAgent, ofRun] as unknown as { id: string; requestedBy: unknown }[]) {
    expect(requestedBy).toEqual({ type: 'system', id: null })
    expect(outcomeOf(await server.call(`/approvals/${id}`, { token: member.token }))).toBe('404 approval_not_found')
    expect(outcomeOf(await server.call(`/approvals/${id}`, { token: admin.token }))).toBe('200')
  }
  expect(JSON.stringify(await server.ok('/approvals', { token: member.token }))).not.toMatch(/mole/i)
})
