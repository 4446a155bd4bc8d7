import type { World } from '../../../../shared/lib/world.ts'
import type { Blobs } from '../../../blobs/blobs.ts'
import type { Tx } from '../../../db/open.ts'
import { removeFileRelations } from '../own/relation-store.ts'
import { forgetBlob, listBlobsOfFile, removeFileRevisions } from '../revision-store.ts'
import { removeFile, replaceFile, type FileRow } from '../store.ts'

/**
 * The end of a file.
 *
 *   active --delete--> deleted, without the bytes of its current version
 *   active --bulk-delete--> deleted --restore--> active
 *   deleted --ten minutes--> (none), and no bytes
 */
type Ending = { blobs: Pick<Blobs, 'release'>; world: World }

export async function deleteFile(
  tx: Tx,
  file: FileRow,
  { blobs, world, keepsBytes }: Ending & { keepsBytes: boolean },
): Promise<void> {
  const now = world.now()
  const { blobId } = file
  const isRemoved = !keepsBytes && blobId !== null
  await replaceFile(tx, file, { ...file, deletedAt: now, updatedAt: now, ...(isRemoved && { blobId: null }) })
  await removeFileRelations(tx, file.id)
  if (!isRemoved) return
  await forgetBlob(tx, file.id, blobId)
  await blobs.release(tx, [blobId])
}

/** Does nothing when it was restored, or purged by somebody else, since it was read. */
export async function purgeFile(tx: Tx, file: FileRow, { blobs }: Pick<Ending, 'blobs'>): Promise<void> {
  const ids = await listBlobsOfFile(tx, file.id)
  await removeFileRelations(tx, file.id)
  await removeFileRevisions(tx, file.id)
  if (!(await removeFile(tx, file))) throw new PurgeTooLateError()
  await blobs.release(tx, ids)
}

/** Undoes the transaction of a purge. */
export class PurgeTooLateError extends Error {}
