import type { WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import type { Db } from '../../../db/open.ts'
import { publishChange } from '../notify.ts'
import { listRunningWorkflowRuns } from '../run-store.ts'

/** More of them go on with the next sweep. */
const mostAtOnce = 1_000

/** The agents of the workspace take work again: its programs go on. */
export async function resumeWorkflows(db: Db, workspaceId: WorkspaceUuid, at: number): Promise<void> {
  for (const id of await listRunningWorkflowRuns(db, workspaceId, mostAtOnce))
    await publishChange(db, { id, workspaceId }, at)
}
