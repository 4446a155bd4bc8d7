import type { RunEffect } from '../lifecycle/run-effects.ts'
import { publish } from '../db/transaction.ts'
import type { AgentRow } from '../resources/agents/store.ts'
import { listDevicesOfWorkspace } from '../resources/devices/store.ts'
import { accountOf, accountsOf, longestWindowMs, successorsInARow } from '../resources/quotas/rules.ts'
import { closeQuota } from '../resources/quotas/store.ts'
import type { Db } from '../db/open.ts'
import { findDetails } from '../resources/runs/details-store.ts'
import { findRun, type RunRow } from '../resources/runs/store.ts'
import { asStopped, goOnAfter } from './going-on.ts'
import type { Wake } from './wake.ts'

/**
 * An effect of a run's end: a run that reached its account's limit, of which the harness says when it is over, closes the
 * account until then and is followed by one that goes on with its session. That one waits for the account, as all others do.
 */
export const goOnAfterLimit: RunEffect = async (db, run, { at, world, exitReason, limitResetsAt }) => {
  if (exitReason !== 'rate_limited' || limitResetsAt == null || run.device === null) return
  const resetsAt = Math.min(limitResetsAt, at + longestWindowMs)
  await closeAccount(db, run, { at, resetsAt })
  if (run.compacts || !(await mayBeFollowed(db, run, limitResetsAt))) return
  const details = await findDetails(db, run.id)
  await goOnAfter(db, run, { stop: 'limit', prompt: details?.prompt ?? null, world })
}

/** Closes the account with which the run worked, and tells its devices. */
async function closeAccount(
  db: Db,
  { workspaceId, device, harness, providerKeyId }: RunRow,
  { at, resetsAt }: { at: number; resetsAt: number },
): Promise<void> {
  const devices = await listDevicesOfWorkspace(db, workspaceId)
  const accounts = new Map(
    devices.map((row) => [
      row.publicId,
      accountOf({ ...row, accounts: accountsOf(row.providerReadiness) }, harness, providerKeyId),
    ]),
  )
  const account = accounts.get(device ?? '')
  // A device that was removed meanwhile.
  if (account === undefined) return
  await closeQuota(db, { workspaceId, account, resetsAt })
  for (const [publicId, own] of accounts)
    if (own === account) await publish(db, { topic: 'device.changed', key: publicId, at })
}

/**
 * A run that follows one which reached a limit works as that one did, and has its place in the line. Where that one was on
 * the agent's fallback, the agent's own harness is as good again.
 */
export function afterLimit(
  key: string | null,
  { parent, agent }: { parent: RunRow | null; agent: Pick<AgentRow, 'fallbackHarness'> },
): Pick<Wake, 'overrides' | 'inLineSince'> {
  const limited = asStopped('limit', key, parent)
  if (limited === null) return {}
  const { harness, modelId: model } = limited.run
  const overrides = { ...limited.overrides, ...(harness !== agent.fallbackHarness && { harness, model }) }
  return { overrides, inLineSince: limited.inLineSince }
}

/** Not by one that would find the same limit, nor without end. */
async function mayBeFollowed(db: Db, run: RunRow, limitResetsAt: number): Promise<boolean> {
  let before = await parentOf(db, run)
  const isSame = before?.limitResetsAt != null && before.device === run.device
  if (isSame && limitResetsAt <= before!.limitResetsAt!) return false
  for (let count = 0; before?.limitResetsAt != null; before = await parentOf(db, before))
    if (++count >= successorsInARow) return false
  return true
}

const parentOf = async (db: Db, { parentRunId }: RunRow) => (parentRunId === null ? null : findRun(db, parentRunId))
