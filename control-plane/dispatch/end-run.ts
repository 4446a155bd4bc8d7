import { publish } from '../db/outbox.ts'
import type { Db } from '../db/open.ts'
import { recordLastRun } from '../resources/agents/store.ts'
import { endRun, type Ending, type RunRow } from '../resources/runs/store.ts'

/** Ends a run and tells everybody whom it concerns, in the caller's transaction. False when it had ended already. */
export async function finishRun(db: Db, run: RunRow, ending: Omit<Ending, 'runId'>): Promise<boolean> {
  if (!(await endRun(db, { ...ending, runId: run.id }))) return false
  await recordLastRun(db, run.agentId, ending.at)
  await publish(db, {
    topic: 'run.ended',
    key: run.id,
    payload: { workspaceId: run.workspaceId, device: run.device, fence: run.fence, exitReason: ending.exitReason },
    at: ending.at,
  })
  return true
}
