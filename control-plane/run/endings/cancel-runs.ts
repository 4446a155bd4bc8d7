import type { World } from '../../../shared/lib/world.ts'
import type { Tx } from '../../db/open.ts'
import { publish } from '../../db/transaction.ts'
import {
  claimCancellation,
  insertCancellation,
  listToCancel,
  recordSeen,
  removeCancellation,
  type RunCancellation,
} from '../../resources/runs/cancellation-store.ts'
import { cancelRun, type Cancel } from './cancel-run.ts'

/** Cancelling one takes some milliseconds, in which a SQLite database does nothing else. */
const atOnce = 8

export type RunsToCancel = Pick<
  RunCancellation,
  'workspaceId' | 'subject' | 'subjectId' | 'extent' | 'exitReason' | 'reason'
>

/** The name of the job that goes on with a cancellation. */
export const cancellationJob = 'cancel_runs'

/**
 * Cancels the runs that exist now, in the caller's transaction: the first few here, the others one batch after another once
 * it is committed. From then on none of these starts, whether or not its turn has come. Whoever halts something must
 * have halted it before, in the same transaction, so that no run is made meanwhile.
 */
export async function cancelRuns(tx: Tx, runs: RunsToCancel, by: Pick<Cancel, 'world' | 'leaseMs'>): Promise<void> {
  const { world } = by
  const at = world.now()
  const cancellation = { ...runs, id: world.uuid(), seenAt: -1, seenId: '', createdAt: at }
  await insertCancellation(tx, cancellation)
  if (!(await cancelSome(tx, cancellation, by))) return
  const payload = { job: cancellationJob, workspaceId: runs.workspaceId }
  await publish(tx, { topic: 'job.requested', key: cancellation.id, payload, at })
}

/** Goes on with a cancellation. `taken`: it is done already, or somebody else is at it. */
export async function goOnCancelling(
  tx: Tx,
  id: string,
  by: { world: World; leaseMs: number },
): Promise<'more' | 'done' | 'taken'> {
  const cancellation = await claimCancellation(tx, id)
  if (cancellation === null) return 'taken'
  return (await cancelSome(tx, cancellation, by)) ? 'more' : 'done'
}

async function cancelSome(
  tx: Tx,
  cancellation: RunCancellation,
  by: Pick<Cancel, 'world' | 'leaseMs'>,
): Promise<boolean> {
  const { id, exitReason, reason } = cancellation
  const runs = await listToCancel(tx, cancellation, atOnce + 1)
  const isMore = runs.length > atOnce
  for (const run of runs.slice(0, atOnce)) await cancelRun(tx, run, { exitReason, reason, ...by })
  if (isMore) await recordSeen(tx, id, runs[atOnce - 1]!)
  else await removeCancellation(tx, id)
  return isMore
}
