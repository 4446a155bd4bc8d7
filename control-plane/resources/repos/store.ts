import { z } from 'zod'
import { nullableText, text, time } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { readRemote } from './rules.ts'

/** Git repositories that a workspace knows: what tasks, folders and pull requests are matched with. */

export const providers = ['github', 'gitlab', 'bitbucket', 'other'] as const

const row = z
  .object({
    id: text,
    workspace_id: text,
    name: text,
    git_remote: text,
    default_branch: nullableText,
    provider: z.enum(providers),
    host: text,
    created_at: time,
  })
  .transform((r) => ({
    id: r.id,
    workspaceId: r.workspace_id,
    /** `owner/name`, lower-case. */
    name: r.name,
    /** `host/owner/name`, lower-case: the same for all forms of the remote's address. */
    gitRemote: r.git_remote,
    defaultBranch: r.default_branch,
    provider: r.provider,
    host: r.host,
    createdAt: r.created_at,
  }))
export type RepoRow = z.infer<typeof row>

/** Throws the database's unique violation when the workspace has the remote already. */
export async function insertRepo(db: Db, repo: RepoRow): Promise<void> {
  await db('repos').insert({
    id: repo.id,
    workspace_id: repo.workspaceId,
    name: repo.name,
    git_remote: repo.gitRemote,
    default_branch: repo.defaultBranch,
    provider: repo.provider,
    host: repo.host,
    created_at: repo.createdAt,
  })
}

export async function findRepo(db: Db, workspaceId: string, id: string): Promise<RepoRow | null> {
  const found: unknown = await db('repos').where({ workspace_id: workspaceId, id: id.toLowerCase() }).first()
  return found === undefined ? null : row.parse(found)
}

/** By name. */
export async function listRepos(db: Db, workspaceId: string, limit: number): Promise<RepoRow[]> {
  const rows: unknown[] = await db('repos')
    .where({ workspace_id: workspaceId })
    .orderBy([{ column: 'name' }, { column: 'id' }])
    .limit(limit)
  return rows.map((value) => row.parse(value))
}

/** Folders keep the id, as they do of repos that never were known here; tasks may no longer be given it. */
export async function removeRepo(db: Db, workspaceId: string, id: string): Promise<boolean> {
  return (await db('repos').where({ workspace_id: workspaceId, id: id.toLowerCase() }).delete()) === 1
}

/** The repo of the workspace that a remote's address names, in whichever form (https, ssh, scp-like) it is written. */
export async function repoOfRemote(db: Db, workspaceId: string, remoteUrl: string): Promise<RepoRow | null> {
  const remote = readRemote(remoteUrl)
  if (remote === null) return null
  const found: unknown = await db('repos').where({ workspace_id: workspaceId, git_remote: remote.gitRemote }).first()
  return found === undefined ? null : row.parse(found)
}
