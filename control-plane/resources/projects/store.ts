import type { AgentRef, AgentUuid, ProjectUuid, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { onlyGranted, onlyVisibleProjects, type GrantedAgent, type ProjectViewer } from './visibility.ts'
import { countOf } from '../../db/reads.ts'
import { z } from 'zod'
import { projectStatuses } from '../../../shared/api/projects.ts'
import { int, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import { agentRef, agentUuid, personUuid, projectUuid, workspaceUuid } from '../../db/id-columns.ts'
import { newestFirst, type OlderPage } from '../../db/id-page.ts'
import { onlyContaining, onlyLive } from '../../db/list-filters.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

const projects = table(
  'projects',
  {
    id: projectUuid,
    workspaceId: workspaceUuid,
    name: text,
    description: text,
    status: z.enum(projectStatuses),
    /** Fixed once the project is created. */
    prefix: nullableText,
    /** UUID of the agent. */
    leadAgentUuid: agentUuid.nullable(),
    ownerUuid: personUuid.nullable(),
    visibility: z.enum(['company', 'private']),
    repoUrl: nullableText,
    deletedAt: nullableTime,
    version: int,
    createdAt: time,
    updatedAt: time,
  },
  { columns: { leadAgentUuid: 'lead_agent_id', ownerUuid: 'owner_user_id' } },
)
export type ProjectRow = RowOf<typeof projects>

/** Throws the database's unique violation when another project of the workspace has the prefix. */
export async function insertProject(db: Db, project: ProjectRow): Promise<void> {
  await projects.insert(db, { ...project, version: 1 })
}

/** Fails with `transient_conflict` when somebody else changed it since it was read. */
export async function replaceProject(db: Db, before: ProjectRow, after: ProjectRow): Promise<void> {
  await projects.replace(db, before, after)
}

export async function findProject(db: Db, workspaceId: WorkspaceUuid, id: ProjectUuid): Promise<ProjectRow | null> {
  return projects.find(db, { workspaceId, id })
}

/** The ones of these projects that the viewer sees, deleted or not, in no order. */
export async function listProjectsByIds(
  db: Db,
  of: { workspaceId: WorkspaceUuid; ids: readonly ProjectUuid[]; viewer: ProjectViewer },
): Promise<ProjectRow[]> {
  if (of.ids.length === 0) return []
  const query = projects
    .from(db)
    .where({ workspace_id: of.workspaceId })
    .whereIn('id', [...of.ids])
  if (of.viewer) onlyVisibleProjects(query, of.viewer)
  return projects.list(query)
}

/** Returns whether a project of the workspace, deleted or not, has the prefix. */
export async function isPrefixTaken(db: Db, workspaceId: WorkspaceUuid, prefix: string): Promise<boolean> {
  return (await db('projects').where({ workspace_id: workspaceId, prefix }).first('id')) !== undefined
}

const grants = table(
  'project_grants',
  { projectId: projectUuid, agentRef, createdAt: time },
  { columns: { agentRef: 'agent_id' } },
)
export type ProjectGrantRow = RowOf<typeof grants>

/** Lets an agent into a project; an existing grant stays as it is. */
export async function insertGrant(db: Db, grant: ProjectGrantRow): Promise<void> {
  await db('project_grants').insert(grants.toColumns(grant)).onConflict(['project_id', 'agent_id']).ignore()
}

/** Lists the agents that were let into a project, first let in first. */
export async function listGrants(db: Db, projectId: ProjectUuid): Promise<ProjectGrantRow[]> {
  return grants.list(grants.from(db).where({ project_id: projectId }).orderBy(['created_at', 'agent_id']))
}

export async function removeGrant(db: Db, projectId: ProjectUuid, agentRef: AgentRef): Promise<boolean> {
  return (await db('project_grants').where({ project_id: projectId, agent_id: agentRef }).delete()) === 1
}

export async function hasGrant(db: Db, projectId: ProjectUuid, agentRef: AgentRef): Promise<boolean> {
  return (await grants.find(db, { projectId, agentRef })) !== null
}

export interface ProjectFilter extends OlderPage {
  workspaceId: WorkspaceUuid
  /** Live projects with one of these statuses; left out: all live ones. */
  statuses?: readonly string[]
  /** Deleted projects, too. */
  withDeleted?: boolean
  /** UUID of the agent. */
  leadAgentUuid?: AgentUuid
  /** Matched case-insensitively against name, description and prefix. */
  q?: string
  visibleTo?: ProjectViewer
  /** The agent that was let into the projects that are listed. */
  grantedTo?: GrantedAgent
}

/** Lists projects newest first; returns one row more than `limit`. */
export async function listProjects(db: Db, filter: ProjectFilter): Promise<ProjectRow[]> {
  const query = projects.from(db).where({ workspace_id: filter.workspaceId })
  onlyLive(query, filter)
  if (filter.leadAgentUuid !== undefined) void query.where({ lead_agent_id: filter.leadAgentUuid })
  onlyContaining(query, ['name', 'description', 'prefix'], filter.q)
  if (filter.visibleTo) onlyVisibleProjects(query, filter.visibleTo)
  if (filter.grantedTo) void query.where((any) => onlyGranted(any, filter.grantedTo!))
  return projects.list(newestFirst(query, filter))
}

/** Counts the live projects that this viewer sees. */
export async function countProjects(db: Db, workspaceId: WorkspaceUuid, viewer: ProjectViewer): Promise<number> {
  const query = db('projects').where({ workspace_id: workspaceId }).whereNull('deleted_at')
  if (viewer) onlyVisibleProjects(query, viewer)
  return countOf(query)
}
