import { linkLimits } from '../../../../shared/device/limits.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Db, Tx } from '../../../db/open.ts'
import { cancelRun } from '../../../lifecycle/cancel-run.ts'
import { pauseAutomationsOf } from '../../automations/store.ts'
import { listLiveCausedBy } from '../../runs/live-store.ts'

/** What goes on in the name of a person. */
export interface CausedBy {
  userId: string
  /** Left out: in all of theirs. */
  workspaceId?: string
}

/**
 * Ends what a person who leaves has running: their runs, whose tokens work for as long as they do, and the automations that
 * fire on their account, which somebody else may take over by resuming them.
 */
export async function endCauses(db: Db, of: CausedBy, world: World): Promise<{ runs: number; automations: number }> {
  const reason = 'The person who caused this run has left the workspace.'
  const cancel = { exitReason: 'interrupted', reason, world, leaseMs: linkLimits.leaseMs } as const
  const live = await listLiveCausedBy(db, of)
  for (const run of live) await cancelRun(db as Tx, run, cancel)
  return { runs: live.length, automations: await pauseAutomationsOf(db, of, world.now()) }
}
