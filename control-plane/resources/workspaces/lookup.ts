import type { WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { fail } from '../../../shared/api/errors.ts'
import type { Db } from '../../db/open.ts'
import { failElsewhere, type Caller } from '../../http/callers.ts'
import { findWorkspace, type WorkspaceRow } from './store.ts'

/**
 * The workspace that a path names, which must be the caller's own. A token works in its own workspace only, and a
 * dashboard session picks one by the header `Svc-Workspace-Id`, so every other id, known or not, gets the same 403
 * `not_permitted`.
 */
export async function namedWorkspace(db: Db, caller: Caller, workspaceId: WorkspaceUuid): Promise<WorkspaceRow> {
  if (workspaceId !== caller.workspaceId) failElsewhere(caller, 'workspaceId')
  return ownWorkspace(db, caller)
}

export async function ownWorkspace(db: Db, caller: Caller): Promise<WorkspaceRow> {
  // The workspace may have been removed during the request.
  return (await findWorkspace(db, caller.workspaceId)) ?? fail('resource_not_found', { param: 'workspaceId' })
}
