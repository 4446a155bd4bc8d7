import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import type { BlobId } from '../../shared/lib/ids.ts'
import { findMark } from './claim-place.ts'
import { BlobMissingError, StorageError, type BlobPlace } from './place.ts'
import { findBlob, listOwnedBlobs, noteUpload } from './store.ts'

export interface MovedFiles {
  moved: number
  movedBytes: number
  /** They were there already. */
  there: number
  /** Ids of blobs that neither place has. */
  missing: string[]
}

const perPage = 200

/**
 * Copies the bytes of all blobs from one place into the other while servers serve, and reads each copy again: it has the hash of what was
 * read, or this fails. Nothing is removed from the source. Whatever ends it, it goes on where it was when it is called again: what
 * the target has is passed over, and a place has the whole of a blob or nothing. Fails with `StorageError`.
 */
export async function moveBlobs(root: Knex, { from, to }: { from: BlobPlace; to: BlobPlace }): Promise<MovedFiles> {
  const mark = await findMark(root)
  const moved: MovedFiles = { moved: 0, movedBytes: 0, there: 0, missing: [] }
  if (mark === null) return moved
  if (!(await from.isMarked(mark)))
    throw new StorageError(from.name, new Error('the files of this database are not there'))
  if (!(await to.isMarked(mark))) await to.mark(mark)
  for (const place of [from, to]) place.use(mark)
  for (let after = ''; ;) {
    const ids = await listOwnedBlobs(root, { after, limit: perPage })
    for (const id of ids) await moveOne(root, { id, from, to, moved })
    if (ids.length < perPage) return moved
    after = ids.at(-1)!
  }
}

async function moveOne(
  root: Knex,
  { id, from, to, moved }: { id: BlobId; from: BlobPlace; to: BlobPlace; moved: MovedFiles },
): Promise<void> {
  if (await to.has(id)) return void moved.there++
  const copied = await copy(root, { id, from, to })
  // Who removes a blob takes its bytes from both places, then its row: what was copied in between is nobody's.
  const row = await findBlob(root, id)
  if (row === null || row.releasedAt !== null) return to.remove({ id, upload: row?.upload ?? null, isWhole: true })
  if (copied === null) return void ((await to.has(id)) ? moved.there++ : moved.missing.push(id))
  moved.moved++
  moved.movedBytes += copied
}

/** Returns the number of bytes; null: the source has none. */
async function copy(
  root: Knex,
  { id, from, to }: { id: BlobId; from: BlobPlace; to: BlobPlace },
): Promise<number | null> {
  const source = await from.open(id).catch((error: unknown) => {
    if (error instanceof BlobMissingError) return null
    throw error
  })
  if (source === null) return null
  const read = createHash('sha256')
  let bytes = 0
  async function* measured(pieces: AsyncIterable<Uint8Array>) {
    for await (const piece of pieces) {
      read.update(piece)
      bytes += piece.length
      yield piece
    }
  }
  try {
    await to.put({ id, beginUpload: (upload) => noteUpload(root, id, upload) }, measured(source))
  } finally {
    // A place may fail before it reads anything.
    source.destroy()
  }
  try {
    const written = createHash('sha256')
    for await (const piece of (await to.open(id)) as AsyncIterable<Uint8Array>) written.update(piece)
    if (written.digest('hex') !== read.digest('hex'))
      throw new StorageError(to.name, new Error(`the copy of ${id} is not what was read`))
    return bytes
  } catch (error) {
    // Nobody has seen that it is whole, and a later call would pass it over.
    await to.remove({ id, upload: null, isWhole: true })
    throw error
  }
}
