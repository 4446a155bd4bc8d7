import type { WorkflowRunId, WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import type { Db } from '../../../db/open.ts'
import type { RunEffect } from '../../../run/effects.ts'
import { endCall } from '../call-store.ts'
import { publishChange } from '../notify.ts'
import { endStepOfRun } from '../step-store.ts'

/**
 * An effect of a run's end: the step of a workflow that it did has ended, unless a person's answer or a wake that waits
 * goes on with it. Comes after the effects that ask for such wakes. Its workflow run is looked at in both cases, so that nothing
 * waits for the answer here.
 */
export const endStep: RunEffect = async (db, run, { at }) => {
  const { id, workflowRunId, workflowCall, workspaceId } = run
  if (workflowRunId === null || workflowCall === null) return
  await endStepOfRun(db, { id, workflowRunId, workflowCall }, at)
  await publishChange(db, { id: workflowRunId, workspaceId }, at)
}

/** Notes that the step has ended, and has its workflow run go on. */
export async function endStepAt(
  db: Db,
  step: { workflowRunId: WorkflowRunId; seq: number; workspaceId: WorkspaceUuid },
  at: number,
): Promise<void> {
  if (await endCall(db, step, { at })) await publishChange(db, { id: step.workflowRunId, ...step }, at)
}
