import type { BlobId, FileId } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { int, nullableText, text, time } from '../../db/columns.ts'
import { actorRef, blobId, fileId } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

const revisions = table(
  'file_revisions',
  {
    id: text,
    fileId,
    /** The number of the revision of its file, from 1. */
    number: int,
    /** null once the bytes are removed. */
    blobId: blobId.nullable(),
    sizeBytes: int,
    contentType: nullableText,
    sha256: text,
    authorType: z.enum(['user', 'agent']),
    authorRef: actorRef,
    createdAt: time,
  },
  { columns: { authorRef: 'author_id' } },
)
export type FileRevisionRow = RowOf<typeof revisions>

/** The one before it is no longer current from here on; of those before that somebody else may not have said so. */
export async function insertFileRevision(db: Db, revision: FileRevisionRow): Promise<void> {
  const { fileId, number, createdAt } = revision
  await revisions.insert(db, revision)
  if (number > 1)
    await db('file_revisions')
      .where({ file_id: fileId })
      .where('number', '<', number)
      .whereNull('replaced_at')
      .update({ replaced_at: createdAt })
}

export async function findFileRevision(db: Db, fileId: FileId, id: string): Promise<FileRevisionRow | null> {
  return revisions.find(db, { fileId, id })
}

export async function findRevisionNumber(db: Db, fileId: FileId, number: number): Promise<FileRevisionRow | null> {
  return revisions.find(db, { fileId, number })
}

/** Lists the revisions of a file, those with a lower number than `below`, newest first; returns one row more than `limit`. */
export async function listFileRevisions(
  db: Db,
  { fileId, below, limit }: { fileId: FileId; below: number | null; limit: number },
): Promise<FileRevisionRow[]> {
  const query = revisions.from(db).where({ file_id: fileId }).orderBy('number', 'desc')
  if (below !== null) void query.where('number', '<', below)
  return revisions.list(query.limit(limit + 1))
}

const ofBlobs = revisions.query('where blob_id in ?')

/** Lists the revisions whose bytes these blobs are. No index finds them: one call for many blobs costs as much as for one. */
export const listRevisionsOfBlobs = (db: Db, blobIds: readonly BlobId[]): Promise<FileRevisionRow[]> =>
  ofBlobs.list(db, [blobIds])

/** Lists the blobs of all revisions of a file. */
export async function listBlobsOfFile(db: Db, fileId: FileId): Promise<BlobId[]> {
  return db('file_revisions').where({ file_id: fileId }).whereNotNull('blob_id').pluck('blob_id')
}

/** After the bytes of a revision are released. */
export async function forgetBlob(db: Db, fileId: FileId, blobId: BlobId): Promise<void> {
  await db('file_revisions').where({ file_id: fileId, blob_id: blobId }).update({ blob_id: null })
}

export async function removeFileRevisions(db: Db, fileId: FileId): Promise<void> {
  await db('file_revisions').where({ file_id: fileId }).delete()
}
