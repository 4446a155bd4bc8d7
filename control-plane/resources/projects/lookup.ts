import { idFrom } from '../../../shared/lib/ids.ts'
import { fail } from '../../../shared/api/errors.ts'
import type { Db } from '../../db/open.ts'
import type { Caller } from '../../http/callers.ts'
import { isProjectVisible, projectViewerOf } from './rules.ts'
import { findProject, hasGrant, type ProjectRow } from './store.ts'

/** The project with this id, deleted or not, if the caller sees it; null otherwise. */
export async function lookUpProject(db: Db, caller: Caller, id: string): Promise<ProjectRow | null> {
  const project = await findProject(db, caller.workspaceId, idFrom(id))
  if (project === null) return null
  const isGranted = caller.kind === 'agent' && (await hasGrant(db, project.id, caller.agentRef))
  return isProjectVisible(project, projectViewerOf(caller), isGranted) ? project : null
}

/** Like `lookUpProject`, but fails with `resource_not_found` where there is none. */
export async function visibleProject(db: Db, caller: Caller, id: string): Promise<ProjectRow> {
  return (await lookUpProject(db, caller, id)) ?? unknownProject()
}

/** Like `visibleProject`, but only if it is not deleted. */
export async function liveProject(db: Db, caller: Caller, id: string): Promise<ProjectRow> {
  const project = await visibleProject(db, caller, id)
  return project.deletedAt === null ? project : unknownProject()
}

export function unknownProject(): never {
  return fail('resource_not_found', { param: 'projectId', message: 'There is no such project that you can see.' })
}
