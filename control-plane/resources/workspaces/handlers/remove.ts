import type { World } from '../../../../shared/lib/world.ts'
import type { Db } from '../../../db/open.ts'
import { publish } from '../../../db/transaction.ts'
import { removalJob } from '../rules.ts'
import { findWorkspace, hasWorkspace, markRemoved, type WorkspaceRow } from '../store.ts'

/**
 * Removes a workspace with everything in it: from the commit on it is gone for everybody. A job then ends its live runs, so that
 * their followers notice, tells each device that it was removed, and removes the rows one batch after another. A device that
 * is away is refused when it comes back, and ends what it executes.
 */
export async function removeWorkspace(
  db: Db,
  workspace: WorkspaceRow,
  world: World,
): Promise<{ companyDeleted: boolean }> {
  const at = world.now()
  // Locked like in the dispatcher, whose offers are then either made before or not at all.
  const locked = (await findWorkspace(db, workspace.id, true)) ?? workspace
  await markRemoved(db, locked, at)
  const payload = { job: removalJob, workspaceId: workspace.id }
  await publish(db, { topic: 'job.requested', key: workspace.id, payload, at })
  return { companyDeleted: !(await hasWorkspace(db, workspace.companyId)) }
}
