import type { World } from '../../../../shared/lib/world.ts'
import { linkLimits } from '../../../../shared/device/limits.ts'
import { publish } from '../../../db/transaction.ts'
import type { Db, Tx } from '../../../db/open.ts'
import { cancelRun } from '../../../lifecycle/cancel-run.ts'
import { listLiveOfAgent } from '../../runs/live-store.ts'
import type { AgentRow } from '../store.ts'

/** Runs of an agent that no device has taken. Each keeps the program that it was created with. */

/** Makes the dispatcher place them again. */
export async function lookAgain(db: Db, agent: AgentRow, at: number): Promise<void> {
  for (const run of await listLiveOfAgent(db, agent.id))
    if (run.status === 'queued') await publish(db, { topic: 'run.queued', key: run.id, at })
}

/** Cancels them, because another person now decides what the agent runs, or has decided otherwise. */
export async function cancelWaiting(
  db: Db,
  agent: AgentRow,
  { reason, world }: { reason: string; world: World },
): Promise<void> {
  const cancel = { exitReason: 'interrupted', reason, world, leaseMs: linkLimits.leaseMs } as const
  for (const run of await listLiveOfAgent(db, agent.id))
    if (run.leaseState !== 'claimed') await cancelRun(db as Tx, run, cancel)
}
