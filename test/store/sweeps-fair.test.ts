import { expect } from 'vitest'
import type { Db } from '../../control-plane/db/open.ts'
import { KeyedQueue } from '../../control-plane/process/keyed-queue.ts'
import { silentLog } from '../../control-plane/process/log.ts'
import { findApproval, insertApproval } from '../../control-plane/resources/approvals/store.ts'
import { findRun } from '../../control-plane/resources/runs/store.ts'
import { registerAllRunEffects } from '../../control-plane/register-run-effects.ts'
import { expiredApprovalsSweep } from '../../control-plane/sweeps/expired-approvals.ts'
import { queuedRunsSweep } from '../../control-plane/run/sweeps/queued-runs.ts'
import { runningRunsSweep } from '../../control-plane/run/sweeps/running-runs.ts'
import type { Sweep } from '../../control-plane/sweeps/sweeper.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { approvalRow } from './hold-rows.ts'
import { at, seedAgent, seedPerson, seedDevice, seedRun, seedWorkspace } from './seed.ts'

// What one workspace has of a thing, however much, keeps no sweep from what others have.

/** More than the pages that sweeps read. */
const many = 501
const hour = 3_600_000
registerAllRunEffects()

/** Copies a row until there are `many`, each with an id of its own. */
async function multiply(db: Db, name: string, { id, ...also }: { id: string; [column: string]: string }) {
  const row: Record<string, unknown> = await db(name).where({ id }).first()
  const columns = Object.keys(row).filter((column) => row[column] !== null)
  const values = columns.map((column) => (column in also || column === 'id' ? `${column} || n` : column))
  await db.raw(
    `with recursive counted(n) as (select 1 union all select n + 1 from counted where n < ${many - 1})
     insert into ${name} (${columns.join(', ')})
     select ${values.join(', ')} from ${name}, counted where id = ?`,
    [id],
  )
}

async function sweep(root: Db, one: Sweep, now: number): Promise<void> {
  const world = { ...realWorld, now: () => now }
  const queue = new KeyedQueue(silentLog, 'failed')
  queue.start()
  await one.run({ root: root as never, now, awakeSince: () => 0, world, log: silentLog, queue })
  await queue.idle()
}

onBoth(
  'runs that wait behind thousands of another workspace are timed out and offered all the same',
  async ({ root }) => {
    const busy = await seedAgent(root, await seedWorkspace(root))
    await multiply(root, 'runs', { id: (await seedRun(root, busy, { createdAt: at + hour })).id })
    const workspaceId = await seedWorkspace(root)
    const late = await seedRun(root, await seedAgent(root, workspaceId), { createdAt: at + hour + 1 })
    const userId = await seedPerson(root, workspaceId)
    await seedDevice(root, { workspaceId, personUuid: userId }, { maxConcurrent: 2, at: at + 2 * hour })
    await root('devices')
      .where({ workspace_id: workspaceId })
      .update({ last_heartbeat_at: at + 2 * hour })
    const mine = await seedAgent(root, workspaceId, { ownerUuid: userId })
    // The room that the first page takes is not given again.
    await multiply(root, 'runs', { id: (await seedRun(root, mine, { createdAt: at + hour + 2 })).id })
    const dispatched: string[] = []
    const queued = queuedRunsSweep({
      dispatchMs: hour,
      gateMs: 24 * hour,
      leaseMs: hour,
      everyMs: 1,
      dispatchRun: () => undefined,
      dispatch: (id) => void dispatched.push(id),
    })
    await sweep(root, queued, at + 2 * hour)
    expect(dispatched).toEqual([workspaceId])
    expect((await root('runs').whereNotNull('ungated_since').select('id')).length).toBe(2)
    // Those of the others have waited less long, and stand before it in the line.
    await root('runs').where({ agent_id: mine.id }).delete()
    await root('runs')
      .where({ agent_id: busy.id })
      .update({ created_at: at + 20 * hour, in_line_since: 1 })
    await sweep(root, queued, at + 30 * hour)
    expect((await findRun(root, late.id))!.exitReason).toBe('gate_timeout')
  },
)

onBoth('a run that is lost ends behind thousands of another workspace that go on', async ({ root }) => {
  const userId = await seedPerson(root, await seedWorkspace(root))
  const busy = await seedAgent(root, await seedWorkspace(root))
  const device = await seedDevice(root, { workspaceId: busy.workspaceId, personUuid: userId })
  const one = await seedRun(root, busy)
  await root('devices')
    .where({ device_id: device.deviceUuid })
    .update({ last_heartbeat_at: at + hour })
  await root('runs')
    .where({ id: one.id })
    .update({ status: 'running', lease_state: 'claimed', device: device.publicId, started_at: at })
  await multiply(root, 'runs', { id: one.id })
  const lost = await seedRun(root, await seedAgent(root, await seedWorkspace(root)), { createdAt: at + 1 })
  await root('runs').where({ id: lost.id }).update({ status: 'running', lease_state: 'claimed', started_at: at })
  const options = { runnerLostMs: hour, runMs: 24 * hour, everyMs: 1, graceMs: 0 }
  await sweep(root, runningRunsSweep(options), at + 2 * hour)
  expect((await findRun(root, lost.id))!.exitReason).toBe('runner_lost')
  expect((await findRun(root, one.id))!.endedAt).toBeNull()
})

onBoth('a spent budget of another workspace is looked at behind thousands that stay spent', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const busy = await seedWorkspace(root)
  const agent = await seedAgent(root, busy, { monthlyBudgetCents: 0 })
  const one = approvalRow(busy, { trigger: 'budget_breach', raiseKey: `budget:${agent.id}`, createdAt: at })
  await insertApproval(root, one)
  await multiply(root, 'approvals', { id: one.id, raise_key: '' })
  const refilled = await seedAgent(root, workspaceId, { monthlyBudgetCents: 100 })
  const row = { trigger: 'budget_breach', raiseKey: `budget:${refilled.id}`, createdAt: at + 1 } as const
  const waiting = approvalRow(workspaceId, row)
  await insertApproval(root, waiting)
  await sweep(root, expiredApprovalsSweep, at + hour)
  expect((await findApproval(root, workspaceId, waiting.id))!.status).toBe('resolved')
  expect((await findApproval(root, busy, one.id))!.status).toBe('open')
})
