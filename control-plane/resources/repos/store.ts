import { idFrom, type RepoUuid, type WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { nullableText, text, time } from '../../db/columns.ts'
import { repoUuid, workspaceUuid } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { countOf } from '../../db/reads.ts'
import { table, type RowOf } from '../../db/table.ts'
import { readRemote } from './rules.ts'

// Git repositories of a workspace, which tasks, folders and pull requests are matched with.

export const providers = ['github', 'gitlab', 'bitbucket', 'other'] as const

const repos = table('repos', {
  id: repoUuid,
  workspaceId: workspaceUuid,
  /** `owner/name`, lower-case. */
  name: text,
  /** `host/owner/name`, lower-case; the same for all forms of the remote's address. */
  gitRemote: text,
  /** The address as it was added; null: nobody said more than `gitRemote`. */
  cloneUrl: nullableText,
  defaultBranch: nullableText,
  provider: z.enum(providers),
  host: text,
  createdAt: time,
})
export type RepoRow = RowOf<typeof repos>

/** Throws the database's unique violation when the workspace has the remote already. */
export async function insertRepo(db: Db, repo: RepoRow): Promise<void> {
  await repos.insert(db, repo)
}

export async function findRepo(db: Db, workspaceId: WorkspaceUuid, id: RepoUuid): Promise<RepoRow | null> {
  return repos.find(db, { workspaceId, id: idFrom(id.toLowerCase()) })
}

/** Lists repos by name. */
export async function listRepos(db: Db, workspaceId: WorkspaceUuid, limit: number): Promise<RepoRow[]> {
  return repos.list(repos.from(db).where({ workspace_id: workspaceId }).orderBy(['name', 'id']).limit(limit))
}

export async function countRepos(db: Db, workspaceId: WorkspaceUuid): Promise<number> {
  return countOf(db('repos').where({ workspace_id: workspaceId }))
}

/** Removes a repo. Folders keep its id, but tasks cannot be given it any more. */
export async function removeRepo(db: Db, workspaceId: WorkspaceUuid, id: RepoUuid): Promise<boolean> {
  return (await db('repos').where({ workspace_id: workspaceId, id: id.toLowerCase() }).delete()) === 1
}

/** The repo of the workspace that a remote's address names, in any form (https, ssh, scp-like). */
export async function repoOfRemote(db: Db, workspaceId: WorkspaceUuid, remoteUrl: string): Promise<RepoRow | null> {
  const remote = readRemote(remoteUrl)
  if (remote === null) return null
  return repos.find(db, { workspaceId, gitRemote: remote.gitRemote })
}
