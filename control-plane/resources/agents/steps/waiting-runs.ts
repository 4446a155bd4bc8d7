import type { World } from '../../../../shared/lib/world.ts'
import { linkLimits } from '../../../../shared/device/limits.ts'
import { publish } from '../../../db/outbox.ts'
import type { Db, Tx } from '../../../db/open.ts'
import { cancelRun } from '../../../lifecycle/cancel-run.ts'
import { listLiveOfAgent } from '../../runs/live-store.ts'
import type { AgentRow } from '../store.ts'

/** Runs of an agent that no device has taken. What each will run was written down when it was made. */

/** Has them placed anew. */
export async function lookAgain(db: Db, agent: AgentRow, at: number): Promise<void> {
  for (const run of await listLiveOfAgent(db, agent.id))
    if (run.status === 'queued') await publish(db, { topic: 'run.queued', key: run.id, at })
}

/** Ends them, since who decides what the agent runs is somebody else now, or has decided otherwise. */
export async function cancelWaiting(
  db: Db,
  agent: AgentRow,
  { reason, world }: { reason: string; world: World },
): Promise<void> {
  const cancel = { exitReason: 'interrupted', reason, world, leaseMs: linkLimits.leaseMs } as const
  for (const run of await listLiveOfAgent(db, agent.id))
    if (run.leaseState !== 'claimed') await cancelRun(db as Tx, run, cancel)
}
