import { hasRole, type Caller } from '../../http/callers.ts'
import type { ProjectViewer } from './visibility.ts'
import type { ProjectRow } from './store.ts'

// Decisions about projects.

/** Workspace admins see private projects, too. */
export function projectViewerOf(caller: Caller): ProjectViewer {
  if (caller.kind === 'agent') return { agentRef: caller.agentRef, agentUuid: caller.agentUuid }
  return hasRole(caller, 'admin') ? null : { personUuid: caller.personUuid }
}

/** A private project is visible to its owner, to workspace admins, and to agents that lead it or were let into it. */
export function isProjectVisible(
  project: Pick<ProjectRow, 'visibility' | 'ownerUuid' | 'leadAgentUuid'>,
  viewer: ProjectViewer,
  isGranted: boolean,
): boolean {
  if (project.visibility === 'company' || viewer === null) return true
  if ('personUuid' in viewer) return project.ownerUuid === viewer.personUuid
  return isGranted || project.leadAgentUuid === viewer.agentUuid
}

/** Returns whether the caller may restore the project and give it away: its owner and workspace admins may. */
export function ownsOrAdministersProject(project: Pick<ProjectRow, 'ownerUuid'>, caller: Caller): boolean {
  return caller.kind === 'person' && (hasRole(caller, 'admin') || project.ownerUuid === caller.personUuid)
}

/**
 * Returns whether a change decides who sees a private project that has an owner, which is for the owner and workspace admins. A project
 * without an owner was made by an agent.
 */
export function decidesWhoSees(before: ProjectRow, changes: Partial<ProjectRow>): boolean {
  if (before.visibility !== 'private' || before.ownerUuid === null) return false
  const after = { ...before, ...changes }
  return after.visibility !== before.visibility || after.leadAgentUuid !== before.leadAgentUuid
}

const previewLength = 220

/** The first 220 whole characters; null when there is no description. */
export function previewOfDescription(description: string): string | null {
  return description === ''
    ? null
    : Array.from(description.slice(0, previewLength * 2))
        .slice(0, previewLength)
        .join('')
}
