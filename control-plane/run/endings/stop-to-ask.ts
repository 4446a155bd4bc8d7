import { fail } from '../../../shared/api/errors.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { Db, Tx } from '../../db/open.ts'
import { cancelRun } from './cancel-run.ts'
import type { AgentCaller } from '../../http/callers.ts'
import { findRun, type RunRow } from '../../resources/runs/store.ts'

/**
 * The run that asks: the caller's own, also when it is named. Null when there is none. Whether it can still be stopped is
 * for `stopToAsk` to say.
 */
export async function askingRun(db: Db, caller: AgentCaller, reference: string | undefined): Promise<RunRow | null> {
  const isOwn = reference === undefined || reference === 'current' || reference === caller.runId
  const run = isOwn ? await findRun(db, caller.runId) : null
  return run !== null && run.fence === caller.fence ? run : null
}

/**
 * Ends the run so that it waits for a person, in the caller's transaction: at once, or by its device, which is told after
 * the commit. False when it had ended, or is being ended for another reason.
 */
export async function stopToAsk(
  tx: Tx,
  run: RunRow,
  stop: { exitReason: 'approval_requested' | 'question_asked'; world: World; leaseMs: number },
): Promise<boolean> {
  const { exitReason, world, leaseMs } = stop
  if (run.cancelRequestedAt !== null) return false
  if (!(await cancelRun(tx, run, { exitReason, reason: null, world, leaseMs }))) return false
  // The run may have been cancelled by somebody else since it was read.
  const after = await findRun(tx, run.id)
  return (after?.endedAt == null ? after?.cancelExitReason : after.exitReason) === exitReason
}

export function stopFailed(): never {
  return fail('hitl_stop_failed')
}

/** The line that the harness prints before it stops. It names only what the run waits for. */
export const sentinelOf = (id: string): string => `[svc: waiting for ${id}; stop now]`
