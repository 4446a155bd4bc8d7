import type { Db } from '../../db/open.ts'
import { publishChange } from './notify.ts'
import { replaceWorkflowRun, type WorkflowRunRow } from './run-store.ts'

/** Has a replica end the workflow run once this is committed; an advance that is under way is discarded. */
export async function requestWorkflowCancel(db: Db, run: WorkflowRunRow, at: number): Promise<void> {
  await replaceWorkflowRun(db, run, { cancelRequestedAt: at })
  await publishChange(db, run, at)
}
