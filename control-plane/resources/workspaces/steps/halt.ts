import type { World } from '../../../../shared/lib/world.ts'
import type { Tx } from '../../../db/open.ts'
import { cancelRun } from '../../../lifecycle/cancel-run.ts'
import { listQueued } from '../../runs/live-store.ts'

const atOnce = 500

/**
 * Cancels the runs of a workspace that no device executes yet, including offered ones, with the exit reason
 * `company_paused`. Must be called after the workspace was halted in the same transaction: runs that are queued
 * meanwhile are cancelled by the dispatcher, which checks the workspace before it offers one.
 */
export async function cancelQueuedRuns(
  tx: Tx,
  workspaceId: string,
  cancel: { reason: string; world: World; leaseMs: number },
): Promise<void> {
  for (;;) {
    const queued = await listQueued(tx, { workspaceId, limit: atOnce })
    for (const run of queued) await cancelRun(tx, run, { exitReason: 'company_paused', ...cancel })
    if (queued.length < atOnce) return
  }
}
