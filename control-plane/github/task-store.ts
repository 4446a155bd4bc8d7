import type { TaskId, WorkspaceUuid } from '../../shared/lib/ids.ts'
import { likeContaining } from '../db/like.ts'
import type { Db } from '../db/open.ts'
import { findOnlyWorkspace, listBoundWorkspaces } from '../resources/repos/binding-store.ts'
import { readRemote } from '../resources/repos/rules.ts'

// The tasks that a pull request is about.

export interface PullFacts {
  /** `host/owner/name`, lower-case. */
  remote: string
  /** `owner/name`, lower-case. */
  repo: string
  url: string
  /** null: it is no task's by its branch. */
  branch: string | null
  keys: readonly string[]
}

/** More tasks of one workspace than a pull request can name, and some by its branch. */
const mostOfWorkspace = 200

/**
 * Lists tasks that the pull request names by key, that have its branch, or that it already belongs to. Only workspaces
 * that know the repository count: keys are unique within a workspace only, and a repository must not reach into others. Of
 * a workspace with too many the named ones come first, and no other workspace has fewer for it.
 */
export async function listTasksOfPull(
  db: Db,
  pull: PullFacts,
  most = mostOfWorkspace,
): Promise<{ id: TaskId; workspaceId: WorkspaceUuid }[]> {
  const workspaces = await listWorkspacesOfRepo(db, pull)
  if (workspaces.length === 0) return []
  const like = likeContaining(JSON.stringify(pull.url))
  const namedFirst =
    pull.keys.length === 0 ? '' : `case when t.key in (${pull.keys.map(() => '?').join(', ')}) then 0 else 1 end, `
  const place = `row_number() over (partition by t.workspace_id order by ${namedFirst}t.id) as place`
  const meant = db('tasks as t')
    .leftJoin('repos as r', 'r.id', 't.repo_id')
    .whereIn('t.workspace_id', workspaces)
    .where((named) => {
      void named.whereIn('t.key', [...pull.keys])
      if (pull.branch !== null) void named.orWhere('t.branch_name', pull.branch)
      void named.orWhereRaw(`t.pull_request like ? escape '\\'`, [like])
    })
    // Tasks of other repositories are not meant.
    .where((own) => void own.whereNull('t.repo_id').orWhere('r.git_remote', pull.remote))
    .select('t.id', 't.workspace_id', db.raw(place, [...pull.keys]))
  const first = db.from(meant.as('meant')).where('place', '<=', most).orderBy('id')
  return first.select({ id: 'id', workspaceId: 'workspace_id' })
}

/**
 * Lists the workspaces with the repository among their repos, projects or automations, if the operator bound it to
 * them. The only workspace of a server knows all repositories.
 */
export async function listWorkspacesOfRepo(db: Db, of: { remote: string; repo: string }): Promise<WorkspaceUuid[]> {
  const bound = new Set(await listBoundWorkspaces(db, of.repo))
  if (bound.size === 0 || (await findOnlyWorkspace(db)) !== null) return [...bound]
  const repos: { workspace_id: WorkspaceUuid }[] = await db('repos')
    .where({ git_remote: of.remote })
    .select('workspace_id')
  const automations: { workspace_id: WorkspaceUuid }[] = await db('automations')
    .where({ trigger_type: 'github', repo: of.repo })
    .select('workspace_id')
  const like = likeContaining(of.repo)
  const projects: { workspace_id: WorkspaceUuid; repo_url: string }[] = await db('projects')
    .whereNull('deleted_at')
    .whereRaw(`lower(repo_url) like ? escape '\\'`, [like])
    .select('workspace_id', 'repo_url')
  const ofProjects = projects.filter(({ repo_url: url }) => readRemote(url)?.gitRemote === of.remote)
  const knowing = new Set([...repos, ...automations, ...ofProjects].map((row) => row.workspace_id))
  return [...knowing].filter((id) => bound.has(id))
}
