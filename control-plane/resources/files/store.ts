import type { FileId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { z } from 'zod'
import { visibilities } from '../../../shared/api/agents.ts'
import { int, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import { actorRef, blobId, fileId, personRef, workspaceUuid } from '../../db/id-columns.ts'
import { newestFirst, type OlderPage } from '../../db/id-page.ts'
import { onlyContaining } from '../../db/list-filters.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'
import { onlyVisibleFiles, type FileViewer } from './visibility.ts'

const files = table(
  'files',
  {
    id: fileId,
    workspaceId: workspaceUuid,
    name: text,
    contentType: nullableText,
    sizeBytes: int,
    description: nullableText,
    /** `usr_` id. */
    ownerRef: personRef.nullable(),
    visibility: z.enum(visibilities),
    createdByType: z.enum(['user', 'agent']),
    createdByRef: actorRef,
    sha256: text,
    /** null: not a text. */
    textPreview: nullableText,
    /** The number of the current version. */
    revisionCount: int,
    /** The bytes of the current version; null once they are removed. */
    blobId: blobId.nullable(),
    deletedAt: nullableTime,
    version: int,
    createdAt: time,
    updatedAt: time,
  },
  { columns: { ownerRef: 'owner_user_id', createdByRef: 'created_by_id' } },
)
export type FileRow = RowOf<typeof files>

export async function insertFile(db: Db, file: FileRow): Promise<void> {
  await files.insert(db, file)
}

/** Fails with `transient_conflict` when somebody else changed it since it was read. */
export async function replaceFile(db: Db, before: FileRow, after: FileRow): Promise<void> {
  await files.replace(db, before, after)
}

/** The file, deleted or not. */
export async function findFile(db: Db, workspaceId: WorkspaceUuid, id: FileId): Promise<FileRow | null> {
  return files.find(db, { workspaceId, id })
}

/** The file that a signed URL names, in whatever workspace it is. */
export async function findFileById(db: Db, id: FileId): Promise<FileRow | null> {
  return files.find(db, { id })
}

/** Files that are not deleted and that this viewer sees, in no order. */
export async function listFilesByIds(
  db: Db,
  { workspaceId, ids, visibleTo }: { workspaceId: WorkspaceUuid; ids: readonly FileId[]; visibleTo: FileViewer },
): Promise<FileRow[]> {
  if (ids.length === 0) return []
  const query = files
    .from(db)
    .where({ workspace_id: workspaceId })
    .whereNull('deleted_at')
    .whereIn('id', [...ids])
  onlyVisibleFiles(query, visibleTo)
  return files.list(query)
}

export interface FileFilter extends OlderPage {
  workspaceId: WorkspaceUuid
  visibleTo: FileViewer
  /** Deleted files instead of live ones. */
  isDeleted?: boolean
  q?: string
  entity?: { entityType: string; entityId: string }
}

/** Lists files newest first; returns one row more than `limit`. */
export async function listFiles(db: Db, filter: FileFilter): Promise<FileRow[]> {
  const query = files.from(db).where({ workspace_id: filter.workspaceId })
  void (filter.isDeleted === true ? query.whereNotNull('deleted_at') : query.whereNull('deleted_at'))
  onlyVisibleFiles(query, filter.visibleTo)
  onlyContaining(query, ['name', 'description'], filter.q)
  if (filter.entity !== undefined) onlyRelated(query, filter.entity)
  return files.list(newestFirst(query, filter))
}

function onlyRelated(query: Knex.QueryBuilder, { entityType, entityId }: NonNullable<FileFilter['entity']>): void {
  void query.whereIn(
    'id',
    (related) =>
      void related.from('file_relations').select('file_id').where({ entity_type: entityType, entity_id: entityId }),
  )
}

const measured = z.object({ count: int, bytes: int })

/** The number of files that are not deleted and that this viewer sees, and the bytes of their current versions. */
export async function countFiles(
  db: Db,
  { workspaceId, visibleTo }: { workspaceId: WorkspaceUuid; visibleTo: FileViewer },
): Promise<{ count: number; bytes: number }> {
  const query = db('files').where({ workspace_id: workspaceId }).whereNull('deleted_at')
  onlyVisibleFiles(query, visibleTo)
  const rows: unknown[] = await query.select(db.raw('count(*) as count, coalesce(sum(size_bytes), 0) as bytes'))
  return measured.parse(rows[0])
}

/** Lists files that were deleted before this time, longest deleted first. */
export async function listDeletedBefore(db: Db, before: number, limit: number): Promise<FileRow[]> {
  return files.list(files.from(db).where('deleted_at', '<', before).orderBy('deleted_at').orderBy('id').limit(limit))
}

/** Removes the file as it was read, once its revisions and relations are removed. Returns whether it was so still. */
export async function removeFile(db: Db, file: Pick<FileRow, 'id' | 'version'>): Promise<boolean> {
  return (await db('files').where({ id: file.id, version: file.version }).delete()) === 1
}
