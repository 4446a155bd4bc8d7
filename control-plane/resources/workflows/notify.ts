import type { WorkflowRunId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { publish } from '../../db/transaction.ts'
import type { Db } from '../../db/open.ts'

/** Has any replica advance the workflow run, once this is committed. */
export async function publishChange(
  db: Db,
  run: { id: WorkflowRunId; workspaceId: WorkspaceUuid },
  at: number,
): Promise<void> {
  await publish(db, { topic: 'workflow.changed', key: run.id, payload: { workspaceId: run.workspaceId }, at })
}
