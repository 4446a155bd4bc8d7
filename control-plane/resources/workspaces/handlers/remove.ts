import type { World } from '../../../../shared/lib/world.ts'
import { releaseBlobsOfWorkspace } from '../../../blobs/store.ts'
import type { Db } from '../../../db/open.ts'
import { finishRun } from '../../../lifecycle/end-run.ts'
import { publishRevoked } from '../../devices/steps/remove.ts'
import { listDevicesOfWorkspace } from '../../devices/store.ts'
import { listLiveOfWorkspace } from '../../runs/live-store.ts'
import { removeEmptyCompany } from '../company-store.ts'
import { removeWorkspaceRows } from '../removal-store.ts'
import { findWorkspace, type WorkspaceRow } from '../store.ts'

/**
 * Removes a workspace with everything in it. Its live runs end, so that their followers notice. Each device is told
 * that it was removed and ends what it executes; one that is away is refused when it comes back, and then does the
 * same.
 */
export async function removeWorkspace(
  db: Db,
  workspace: WorkspaceRow,
  world: World,
): Promise<{ companyDeleted: boolean }> {
  const at = world.now()
  // Locked like in the dispatcher: its offers are either visible here or not made.
  await findWorkspace(db, workspace.id, true)
  const devices = await listDevicesOfWorkspace(db, workspace.id)
  for (const run of await listLiveOfWorkspace(db, workspace.id)) {
    await finishRun(db, run, {
      fence: null,
      exitReason: 'agent_deleted',
      errorMessage: 'The workspace of this run was deleted.',
      at,
      world,
    })
  }
  for (const device of devices) await publishRevoked(db, device, at)
  // The sweep removes the bytes.
  await releaseBlobsOfWorkspace(db, workspace.id, at)
  await removeWorkspaceRows(db, workspace.id)
  return { companyDeleted: await removeEmptyCompany(db, workspace.companyId) }
}
