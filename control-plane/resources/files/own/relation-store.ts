import type { FileId } from '../../../../shared/lib/ids.ts'
import { z } from 'zod'
import { entityTypes } from '../../../../shared/api/file-fields.ts'
import { text, time } from '../../../db/columns.ts'
import { fileId } from '../../../db/id-columns.ts'
import { newestFirst, type OlderPage } from '../../../db/id-page.ts'
import type { Db } from '../../../db/open.ts'
import { table, type RowOf } from '../../../db/table.ts'

const relations = table('file_relations', {
  id: text,
  fileId,
  entityType: z.enum(entityTypes),
  /** UUID of a project; `tsk_`, `run_`, `msg_` or `cnv_` id of what else there is. */
  entityId: text,
  role: text,
  createdAt: time,
})
export type FileRelationRow = RowOf<typeof relations>

/** Returns false when the file has it already. */
export async function insertFileRelation(db: Db, relation: FileRelationRow): Promise<boolean> {
  return relations.insertNew(db, relation, ['fileId', 'entityType', 'entityId', 'role'])
}

export async function findFileRelation(db: Db, fileId: FileId, id: string): Promise<FileRelationRow | null> {
  return relations.find(db, { fileId, id })
}

/** Lists the relations of a file newest first; returns one row more than `limit`. */
export async function listFileRelations(
  db: Db,
  { fileId, ...page }: OlderPage & { fileId: FileId },
): Promise<FileRelationRow[]> {
  return relations.list(newestFirst(relations.from(db).where({ file_id: fileId }), page))
}

export async function removeFileRelation(db: Db, fileId: FileId, id: string): Promise<boolean> {
  return (await db('file_relations').where({ file_id: fileId, id }).delete()) === 1
}

export async function removeFileRelations(db: Db, fileId: FileId): Promise<void> {
  await db('file_relations').where({ file_id: fileId }).delete()
}
