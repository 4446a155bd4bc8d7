import type { DeviceRef, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { deviceTime } from '../../../shared/device/bounds.ts'
import { usedLimit } from '../../../shared/device/used-limits.ts'
import { z } from 'zod'
import { int, json, nullableTime, text, time } from '../../db/columns.ts'
import { deviceRef, workspaceUuid } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { command, query } from '../../db/statement.ts'
import { table, type RowOf } from '../../db/table.ts'

/** An account (see `accountOf`) that a provider's limit keeps from being used until `resetsAt`. `closedAt` is null where nobody wrote it down. */
const windows = table('quota_windows', {
  workspaceId: workspaceUuid,
  account: text,
  resetsAt: time,
  closedAt: nullableTime,
})
export type QuotaWindow = RowOf<typeof windows>

/** Several runs may reach one limit; the latest reset that was told counts, and an account that is closed stays so since it was. */
export async function closeQuota(db: Db, window: QuotaWindow & { closedAt: number }): Promise<void> {
  const { resetsAt, closedAt } = window
  const since = db.raw('case when quota_windows.resets_at > ? then coalesce(quota_windows.closed_at, ?) else ? end', [
    closedAt,
    closedAt,
    closedAt,
  ])
  await db('quota_windows')
    .insert(windows.toColumns(window))
    .onConflict(['workspace_id', 'account'])
    .merge({ resets_at: resetsAt, closed_at: since })
    .where('quota_windows.resets_at', '<', window.resetsAt)
}

const ofWorkspace = windows.query('where workspace_id = ? and resets_at > ? order by account')

/** Lists the windows that reset after `since`. */
export const listQuotaWindows = (db: Db, workspaceId: WorkspaceUuid, since: number): Promise<QuotaWindow[]> =>
  ofWorkspace.list(db, [workspaceId, since])

const reset = query(
  'select distinct workspace_id from quota_windows where resets_at > ? and resets_at <= ?',
  z.object({ workspace_id: workspaceUuid }),
)

/** Workspaces of which an account was reset between the two times. */
export async function listWorkspacesWithReset(db: Db, from: number, to: number): Promise<WorkspaceUuid[]> {
  return (await reset.list(db, [from, to])).map((row) => row.workspace_id)
}

const removeWindows = command('delete from quota_windows where resets_at < ?')

export async function removeQuotasBefore(db: Db, before: number): Promise<void> {
  await removeWindows(db, [before])
}

/** A limit that another release wrote and this one cannot read is left out; the others are kept. */
const keptUse = usedLimit.extend({ toldAt: deviceTime.optional() })
const keptUses = z.array(z.unknown()).transform((kept) => kept.flatMap((one) => keptUse.safeParse(one).data ?? []))

/**
 * How much of its provider's limits an account has used, as its runs told, last at `toldAt`. All of it is over at `trueUntil`. A limit that an
 * earlier run told of has a time of its own.
 */
const uses = table('quota_uses', {
  workspaceId: workspaceUuid,
  account: text,
  used: json(keptUses),
  toldAt: time,
  trueUntil: time,
})
export type QuotaUse = RowOf<typeof uses>

const ofAccount = uses.query('where workspace_id = ? and account = ?')

export const findQuotaUse = (db: Db, of: { workspaceId: WorkspaceUuid; account: string }): Promise<QuotaUse | null> =>
  ofAccount.first(db, [of.workspaceId, of.account])

/** Keeps what was told latest: the ends of two runs may come in another order. */
export async function replaceQuotaUse(db: Db, use: QuotaUse): Promise<void> {
  await db('quota_uses')
    .insert(uses.toColumns(use))
    .onConflict(['workspace_id', 'account'])
    .merge()
    .where('quota_uses.told_at', '<=', use.toldAt)
}

const usesOfWorkspace = uses.query('where workspace_id = ? and true_until > ? order by account')

/** Lists what was told of accounts and is not over at `now`. */
export const listQuotaUses = (db: Db, workspaceId: WorkspaceUuid, now: number): Promise<QuotaUse[]> =>
  usesOfWorkspace.list(db, [workspaceId, now])

const removeUses = command('delete from quota_uses where true_until < ?')

export async function removeQuotaUsesBefore(db: Db, before: number): Promise<void> {
  await removeUses(db, [before])
}

/** The breaker of a provider on a device (see `circuitAfter`). */
const circuits = table('provider_circuits', {
  workspaceId: workspaceUuid,
  device: deviceRef,
  provider: text,
  times: int,
  openedAt: time,
  openUntil: time,
})
export type CircuitRow = RowOf<typeof circuits>

export async function replaceCircuit(db: Db, circuit: CircuitRow): Promise<void> {
  await db('provider_circuits')
    .insert(circuits.toColumns(circuit))
    .onConflict(['workspace_id', 'device', 'provider'])
    .merge()
}

const one = circuits.query('where workspace_id = ? and device = ? and provider = ?')

export const findCircuit = (
  db: Db,
  of: { workspaceId: WorkspaceUuid; device: DeviceRef; provider: string },
): Promise<CircuitRow | null> => one.first(db, [of.workspaceId, of.device, of.provider])

const openOnes = circuits.query('where workspace_id = ? and open_until > ? order by device, provider')

/** Lists the breakers of the workspace that are open after `since`. */
export const listCircuits = (db: Db, workspaceId: WorkspaceUuid, since: number): Promise<CircuitRow[]> =>
  openOnes.list(db, [workspaceId, since])

const opened = query(
  'select distinct workspace_id from provider_circuits where open_until > ? and open_until <= ?',
  z.object({ workspace_id: workspaceUuid }),
)

/** Workspaces of which a breaker was open until a time between the two. */
export async function listWorkspacesWithTrial(db: Db, from: number, to: number): Promise<WorkspaceUuid[]> {
  return (await opened.list(db, [from, to])).map((row) => row.workspace_id)
}

const removeCircuits = command('delete from provider_circuits where open_until < ?')

export async function removeCircuitsBefore(db: Db, before: number): Promise<void> {
  await removeCircuits(db, [before])
}
