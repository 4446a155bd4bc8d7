import type { RunId } from '../../../../shared/lib/ids.ts'
import type { Db } from '../../../db/open.ts'
import { findDetails } from '../../runs/details-store.ts'
import { findRun } from '../../runs/store.ts'
import { endStepAt } from './step-ended.ts'

/**
 * Ends the command step whose command a person rejected; while its run has yet to end, that ends it. False: the run does no command step,
 * and its agent is to be told.
 */
export async function endRejectedCommand(db: Db, runId: RunId | null, at: number): Promise<boolean> {
  const run = runId === null ? null : await findRun(db, runId)
  if (run === null || run.workflowRunId === null || run.workflowCall === null) return false
  if ((await findDetails(db, run.id))?.spec.gate == null) return false
  const { workflowRunId, workflowCall: seq, workspaceId } = run
  if (run.endedAt !== null) await endStepAt(db, { workflowRunId, seq, workspaceId }, at)
  return true
}
