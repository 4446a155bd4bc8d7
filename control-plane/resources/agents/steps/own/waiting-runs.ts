import type { World } from '../../../../../shared/lib/world.ts'
import { linkLimits } from '../../../../../shared/device/limits.ts'
import { publish } from '../../../../db/transaction.ts'
import type { Db, Tx } from '../../../../db/open.ts'
import { cancelRuns } from '../../../../run/endings/cancel-runs.ts'
import { listLiveOfAgent } from '../../../runs/live-store.ts'
import type { AgentRow } from '../../store.ts'

// Runs of an agent that no device has taken. Each keeps the program that it was created with.

/** Makes the dispatcher place them again. */
export async function reconsiderWaiting(db: Db, agent: AgentRow, at: number): Promise<void> {
  for (const run of await listLiveOfAgent(db, agent.id))
    if (run.status === 'queued') await publish(db, { topic: 'run.queued', key: run.id, at })
}

/** Cancels them, because another person now decides what the agent runs, or has decided otherwise. */
export async function cancelWaiting(
  db: Tx,
  agent: AgentRow,
  { reason, world }: { reason: string; world: World },
): Promise<void> {
  const runs = { ...runsOfAgent(agent), extent: 'waiting', exitReason: 'interrupted', reason } as const
  await cancelRuns(db, runs, { world, leaseMs: linkLimits.leaseMs })
}

/** The runs of an agent, for their cancellation. */
export const runsOfAgent = ({ id, workspaceId }: Pick<AgentRow, 'id' | 'workspaceId'>) =>
  ({ workspaceId, subject: 'agent', subjectId: id }) as const
