import { z } from 'zod'
import { nullableText, nullableTime, text, time } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { columnsOf, query } from '../../db/statement.ts'

const row = z
  .object({
    short_id: text,
    workspace_id: text,
    device: text,
    display_name: text,
    root_path: text,
    repo_id: nullableText,
    binding_state: z.enum(['active', 'manual_rebind_required']),
    created_by: text,
    removed_at: nullableTime,
    created_at: time,
  })
  .transform((r) => ({
    shortId: r.short_id,
    workspaceId: r.workspace_id,
    /** The durable id (`dvc_...`) of its device. */
    device: r.device,
    displayName: r.display_name,
    rootPath: r.root_path,
    repoId: r.repo_id,
    bindingState: r.binding_state,
    createdBy: r.created_by,
    removedAt: r.removed_at,
    createdAt: r.created_at,
  }))
export type FolderRow = z.infer<typeof row>

export async function insertFolder(
  db: Db,
  folder: Omit<FolderRow, 'removedAt' | 'repoId' | 'bindingState'>,
): Promise<void> {
  await db('folders').insert({
    short_id: folder.shortId,
    workspace_id: folder.workspaceId,
    device: folder.device,
    display_name: folder.displayName,
    root_path: folder.rootPath,
    binding_state: 'active',
    created_by: folder.createdBy,
    created_at: folder.createdAt,
  })
}

const select = `select ${columnsOf(row)} from folders`
const byId = query(`${select} where workspace_id = ? and short_id = ? and removed_at is null`, row)
const byIds = query(`${select} where workspace_id = ? and short_id in ? and removed_at is null`, row)

export async function findFolder(db: Db, workspaceId: string, shortId: string): Promise<FolderRow | null> {
  return byId.first(db, [workspaceId, shortId])
}

export async function listFoldersByIds(db: Db, workspaceId: string, shortIds: readonly string[]): Promise<FolderRow[]> {
  return shortIds.length === 0 ? [] : byIds.list(db, [workspaceId, shortIds])
}

/** The folders that a person added, newest first. */
export async function listFoldersOfUser(db: Db, workspaceId: string, userId: string): Promise<FolderRow[]> {
  const rows: unknown[] = await db('folders')
    .where({ workspace_id: workspaceId, created_by: userId })
    .whereNull('removed_at')
    .orderBy([
      { column: 'created_at', order: 'desc' },
      { column: 'short_id', order: 'desc' },
    ])
  return rows.map((value) => row.parse(value))
}

/** The folders on a device, oldest first. */
export async function listFoldersOfDevice(db: Db, workspaceId: string, device: string): Promise<FolderRow[]> {
  const rows: unknown[] = await db('folders')
    .where({ workspace_id: workspaceId, device })
    .whereNull('removed_at')
    .orderBy(['created_at', 'short_id'])
  return rows.map((value) => row.parse(value))
}

/** Throws the database's unique violation when another live folder of the device holds the repo. */
export async function replaceRepo(db: Db, shortId: string, repoId: string | null): Promise<boolean> {
  return (await db('folders').where({ short_id: shortId }).whereNull('removed_at').update({ repo_id: repoId })) === 1
}

export async function removeFolder(db: Db, shortId: string, at: number): Promise<boolean> {
  return (await db('folders').where({ short_id: shortId }).whereNull('removed_at').update({ removed_at: at })) === 1
}

export async function findFolderByRepo(db: Db, device: string, repoId: string): Promise<FolderRow | null> {
  const found: unknown = await db('folders').where({ device, repo_id: repoId }).whereNull('removed_at').first()
  return found === undefined ? null : row.parse(found)
}
