import type { WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { text, time } from '../../db/columns.ts'
import { workspaceUuid } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { inKeptWorkspace } from '../../db/removed.ts'
import { table, type RowOf } from '../../db/table.ts'

// The repositories that a workspace may reach through the server's connection to its git host. The credentials are the
// operator's, so only the operator binds (`svc-server repo bind`): anybody can make a workspace and be its admin. A
// server's only workspace reaches them all.

/** `owner/name`, `owner/*` or `*`; lower-case. */
export const repositoryPattern = z
  .string()
  .trim()
  .toLowerCase()
  .max(200)
  .regex(/^(?:\*|[\w.-]+\/(?:\*|[\w.-]+))$/, 'write owner/name, owner/* or *')

/** The patterns that match this repository (`owner/name`). */
const patternsOf = (repository: string): string[] => {
  const name = repository.toLowerCase()
  return [name, `${name.split('/')[0]}/*`, '*']
}

const bindings = table(
  'repo_bindings',
  { workspaceId: workspaceUuid, repository: text, at: time },
  { columns: { at: 'created_at' } },
)

/** Adds a binding; an existing one stays. */
export async function insertBinding(db: Db, binding: RowOf<typeof bindings>): Promise<void> {
  await db('repo_bindings').insert(bindings.toColumns(binding)).onConflict(['workspace_id', 'repository']).ignore()
}

export async function removeBinding(
  db: Db,
  binding: { workspaceId: WorkspaceUuid; repository: string },
): Promise<boolean> {
  const { workspaceId, repository } = binding
  return (await db('repo_bindings').where({ workspace_id: workspaceId, repository }).delete()) === 1
}

const bindingRow = z.object({ workspaceId: workspaceUuid, workspace: text, repository: text })
export type RepoBinding = z.infer<typeof bindingRow>

/** Lists the bindings of all workspaces, ordered by slug. */
export async function listBindings(db: Db): Promise<RepoBinding[]> {
  const rows: unknown[] = await db('repo_bindings')
    .join('workspaces', 'workspaces.id', 'repo_bindings.workspace_id')
    .whereNull('workspaces.removed_at')
    .orderBy(['workspaces.slug', 'repo_bindings.repository'])
    .select('workspaces.id as workspaceId', 'workspaces.slug as workspace', 'repo_bindings.repository')
  return rows.map((value) => bindingRow.parse(value))
}

/** The server's only workspace; null when there are several. */
export async function findOnlyWorkspace(db: Db): Promise<WorkspaceUuid | null> {
  const all: { id: WorkspaceUuid }[] = await db('workspaces').whereNull('removed_at').select('id').limit(2)
  return all.length === 1 ? all[0]!.id : null
}

/** Ids of the workspaces that reach the repository (`owner/name`). */
export async function listBoundWorkspaces(db: Db, repository: string): Promise<WorkspaceUuid[]> {
  const only = await findOnlyWorkspace(db)
  if (only !== null) return [only]
  const found = await bindings.list(
    bindings.from(db).whereIn('repository', patternsOf(repository)).whereRaw(inKeptWorkspace('repo_bindings')),
  )
  return [...new Set(found.map(({ workspaceId }) => workspaceId))]
}

export async function isBound(db: Db, workspaceId: WorkspaceUuid, repository: string): Promise<boolean> {
  return (await listBoundWorkspaces(db, repository)).includes(workspaceId)
}
