import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EndReport } from '../../../shared/device/protocol.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'

let server: TestServer
let device: FakeDevice
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-models-'))
  const file = join(folder, 'models.json')
  const price = { input: '100', output: '0', cacheRead: '0', cacheWrite: '0' }
  writeFileSync(file, JSON.stringify({ models: [{ id: 'house', harness: 'codex', efforts: [], price }] }))
  server = await TestServer.start({ settings: { SVC_MODELS_FILE: file } })
  device = await FakeDevice.connect(server)
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
  rmSync(folder, { recursive: true })
})

const agentWith = (body: Record<string, unknown>) => server.createAgent({ harness: null, command: null, ...body })

/** A run of the agent that ends with this usage; returns the run as it is read then. */
async function runWith(agentId: string, usage: EndReport['usage'], exitReason: 'completed' | 'error' = 'completed') {
  const runId = await server.startRun(agentId)
  const work = await device.take()
  await work.end(exitReason, { usage })
  return server.ok(`/runs/${runId}`)
}
const spentBy = async (agentId: string) => (await server.ok(`/agents/${agentId}`)).spentMonthlyCents as number

describe('what a run costs', () => {
  test('is the harness’s own word, else reckoned by the catalog, else not known', async () => {
    const agent = await agentWith({ model: 'claude-sonnet-4-5' })
    const usage = { inputTokens: 1_000, outputTokens: 100, cacheReadTokens: 10_000, cacheWriteTokens: 1_000 }
    expect((await runWith(agent.id, { ...usage, costUsd: '0.5' })).costUsd).toBe('0.5')
    expect((await runWith(agent.id, usage)).costUsd).toBe('0.01125')
    // A failed run costs as much, and the model that was used in the end counts.
    expect((await runWith(agent.id, { ...usage, model: 'claude-haiku-4-5-20251001' }, 'error')).costUsd).toBe('0.00375')
    expect((await runWith(agent.id, { ...usage, model: 'unheard-of' })).costUsd).toBeNull()
    expect((await runWith(agent.id, null)).costUsd).toBeNull()
    expect(await spentBy(agent.id)).toBe(52)
  })

  test('is known while the run lives, and kept when it is cancelled without a word from its device', async () => {
    const agent = await agentWith({ model: 'house' })
    const runId = await server.startRun(agent.id)
    const work = await device.take()
    await work.events({ kind: 'usage', data: { inputTokens: 1_000 } })
    expect((await server.ok(`/runs/${runId}`)).costUsd).toBe('0.1')
    // The catalog of the operator says by what it is run, too.
    expect(agent.harness).toBe('codex')
    await work.end('interrupted')
    expect((await server.ok(`/runs/${runId}`)).costUsd).toBe('0.1')
    expect(await spentBy(agent.id)).toBe(10)
  })

  test('counts as a million dollars at most, whatever a device says, and may be added to', async () => {
    const agent = await agentWith({ model: 'gpt-5' })
    const mostCents = 100_000_000
    await runWith(agent.id, { costUsd: '999999.99' })
    expect(await spentBy(agent.id)).toBe(mostCents - 1)
    await runWith(agent.id, { costUsd: '1000000.01' })
    expect(await spentBy(agent.id)).toBe(2 * mostCents - 1)
    await runWith(agent.id, { costUsd: '9'.repeat(300) })
    expect(await spentBy(agent.id)).toBe(3 * mostCents - 1)
  })

  test('is summed without rounding, and forgotten when the month is over', async () => {
    const agent = await agentWith({ model: 'gpt-5' })
    for (let run = 0; run < 3; run++) await runWith(agent.id, { costUsd: '0.004' })
    expect(await spentBy(agent.id)).toBe(1)
    const nextMonth = new Date(server.world.now())
    nextMonth.setUTCMonth(nextMonth.getUTCMonth() + 1, 1)
    server.world.advance(nextMonth.getTime() - server.world.now())
    expect(await spentBy(agent.id)).toBe(0)
  })
})

describe('a monthly budget', () => {
  test('of an agent refuses wakes once it is spent, until it is raised', async () => {
    const fresh = await FakeDevice.connect(server)
    device = fresh
    const agent = await agentWith({ model: 'gpt-5', monthlyBudgetCents: 50 })
    expect((await server.ok(`/agents/${agent.id}/config`)).config.runtime.monthlyBudgetCents).toBe(50)
    await runWith(agent.id, { costUsd: '0.499999999' })
    await runWith(agent.id, { costUsd: '0.000000001' })
    const wake = () => server.ok(`/agents/${agent.id}/runs`, { body: {} })
    expect(await wake()).toMatchObject({ kind: 'not_dispatched', reason: 'budget_blocked' })
    const { audit } = await server.ok(`/agents/${agent.id}/audit`)
    expect(audit.map((warning: { code: string }) => warning.code)).toContain('budget_spent')
    const put = (monthlyBudgetCents: number | null) =>
      server.ok(`/agents/${agent.id}/config`, { method: 'PUT', body: { config: { runtime: { monthlyBudgetCents } } } })
    expect((await put(51)).revision.changedKeys).toEqual(['runtime.monthlyBudgetCents'])
    expect((await runWith(agent.id, { costUsd: '5' })).status).toBe('succeeded')
    expect(await wake()).toMatchObject({ reason: 'budget_blocked' })
    await put(null)
    expect((await wake()).kind).toBe('queued')
    await (await device.take()).end('completed')
    // No budget at all.
    await put(0)
    expect(await wake()).toMatchObject({ reason: 'budget_blocked' })
  })

  test('of the workspace counts what all its agents spent, deleted ones too', async () => {
    const [one, two] = [await agentWith({ model: 'gpt-5' }), await agentWith({ model: 'gpt-5' })]
    await runWith(one.id, { costUsd: '3' })
    await server.ok(`/agents/${one.id}`, { method: 'DELETE' })
    const wake = () => server.ok(`/agents/${two.id}/runs`, { body: {} })
    const patch = (monthlyBudgetCents: number | null) =>
      server.ok(`/workspaces/${server.owner.workspaceId}`, { method: 'PATCH', body: { monthlyBudgetCents } })
    expect((await patch(200)).monthlyBudgetCents).toBe(200)
    expect(await wake()).toMatchObject({ kind: 'not_dispatched', reason: 'budget_blocked' })
    await patch(100_000)
    expect((await wake()).kind).toBe('queued')
    await (await device.take()).end('completed')
    expect((await patch(null)).monthlyBudgetCents).toBeNull()
  })
})
