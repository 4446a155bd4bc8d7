import { publish } from '../../db/transaction.ts'
import type { Db } from '../../db/open.ts'

/** Has any replica advance the workflow run, once this is committed. */
export async function publishChange(db: Db, run: { id: string; workspaceId: string }, at: number): Promise<void> {
  await publish(db, { topic: 'workflow.changed', key: run.id, payload: { workspaceId: run.workspaceId }, at })
}
