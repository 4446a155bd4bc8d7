import type { DeviceRef, FolderRef, PersonUuid, RepoUuid, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { nullableTime, text, time } from '../../db/columns.ts'
import { deviceRef, folderRef, personUuid, repoUuid, workspaceUuid } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { countOf } from '../../db/reads.ts'
import { table, type RowOf } from '../../db/table.ts'

const folders = table(
  'folders',
  {
    shortId: folderRef,
    workspaceId: workspaceUuid,
    /** The durable id (`dvc_...`) of its device. */
    device: deviceRef,
    displayName: text,
    rootPath: text,
    repoId: repoUuid.nullable(),
    /** Always `active`: what is shown is derived. */
    bindingState: z.enum(['active', 'manual_rebind_required']),
    createdByUuid: personUuid,
    removedAt: nullableTime,
    createdAt: time,
  },
  { columns: { createdByUuid: 'created_by' } },
)
export type FolderRow = RowOf<typeof folders>

export async function insertFolder(
  db: Db,
  folder: Omit<FolderRow, 'removedAt' | 'repoId' | 'bindingState'>,
): Promise<void> {
  await folders.insert(db, { ...folder, bindingState: 'active' })
}

const byId = folders.query('where workspace_id = ? and short_id = ? and removed_at is null')

export async function findFolder(db: Db, workspaceId: WorkspaceUuid, shortId: FolderRef): Promise<FolderRow | null> {
  return byId.first(db, [workspaceId, shortId])
}

/** The folders that a person added, newest first. */
export async function listFoldersOfUser(
  db: Db,
  workspaceId: WorkspaceUuid,
  personUuid: PersonUuid,
): Promise<FolderRow[]> {
  return folders.list(
    folders
      .from(db)
      .where({ workspace_id: workspaceId, created_by: personUuid })
      .whereNull('removed_at')
      .orderByRaw('created_at desc, short_id desc'),
  )
}

const ofDevice = folders.query(
  'where workspace_id = ? and device = ? and removed_at is null order by created_at, short_id',
)

/** The folders on a device, oldest first. */
export const listFoldersOfDevice = (db: Db, workspaceId: WorkspaceUuid, device: DeviceRef): Promise<FolderRow[]> =>
  ofDevice.list(db, [workspaceId, device])

export async function countFoldersOfDevice(db: Db, device: DeviceRef): Promise<number> {
  return countOf(db('folders').where({ device }).whereNull('removed_at'))
}

/** Throws the database's unique violation when another live folder of the device holds the repo. */
export async function replaceRepo(db: Db, shortId: FolderRef, repoId: RepoUuid | null): Promise<boolean> {
  return (await db('folders').where({ short_id: shortId }).whereNull('removed_at').update({ repo_id: repoId })) === 1
}

export async function removeFolder(db: Db, shortId: FolderRef, at: number): Promise<boolean> {
  return (await db('folders').where({ short_id: shortId }).whereNull('removed_at').update({ removed_at: at })) === 1
}

export async function findFolderByRepo(db: Db, device: DeviceRef, repoId: RepoUuid): Promise<FolderRow | null> {
  return folders.first(folders.from(db).where({ device, repo_id: repoId }).whereNull('removed_at'))
}
