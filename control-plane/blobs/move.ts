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
  /** Ids of blobs of which the source gave other bytes than were stored: they are not copied. */
  damaged: string[]
}

/** What is known of the bytes of a blob since they were stored. */
export interface KnownBytes {
  sizeBytes: number
  /** null: it is not known. */
  sha256: string | null
}

interface Move {
  from: BlobPlace
  to: BlobPlace
  /** Of these blobs; one of which nothing is known is copied as it is read. */
  listKnown: (ids: readonly BlobId[]) => Promise<ReadonlyMap<BlobId, KnownBytes>>
}

/** For each page with something to copy all revisions and bundles are walked once, since no index finds the owner of a blob. */
const perPage = 2_000

/** The source gave other bytes than were stored. */
class DamagedError extends Error {}

/**
 * Copies the bytes of all blobs from one place into the other while servers serve. Bytes that are not those that were stored are not
 * copied. Each copy is read again, and must have the hash of what was read. Nothing is removed from the source. Whatever ends it, the
 * next call goes on: what the target has is passed over, and a place has the whole of a blob or nothing. Fails with `StorageError`.
 */
export async function moveBlobs(root: Knex, { from, to, listKnown }: Move): Promise<MovedFiles> {
  const mark = await findMark(root)
  const moved: MovedFiles = { moved: 0, movedBytes: 0, there: 0, missing: [], damaged: [] }
  if (mark === null) return moved
  if (!(await from.isMarked(mark)))
    throw new StorageError(from.name, new Error('the files of this database are not there'))
  if (!(await to.isMarked(mark))) await to.mark(mark)
  for (const place of [from, to]) place.use(mark)
  for (let after = ''; ;) {
    const ids = await listOwnedBlobs(root, { after, limit: perPage })
    let known: ReturnType<Move['listKnown']> | null = null
    // Asked where there is something to copy.
    const knownOf = async (id: BlobId) => (await (known ??= listKnown(ids))).get(id) ?? null
    for (const id of ids) await moveOne(root, { id, from, to, moved, knownOf })
    if (ids.length < perPage) return moved
    after = ids.at(-1)!
  }
}

interface OneMove {
  id: BlobId
  from: BlobPlace
  to: BlobPlace
  moved: MovedFiles
  knownOf: (id: BlobId) => Promise<KnownBytes | null>
}

async function moveOne(root: Knex, { id, from, to, moved, knownOf }: OneMove): Promise<void> {
  if (await to.has(id)) return void moved.there++
  const known = await knownOf(id)
  const copied = await copy(root, { id, from, to, known }).catch((error: unknown) => {
    if (error instanceof DamagedError) return 'damaged' as const
    throw error
  })
  // Who removes a blob takes its bytes from both places, then its row: what was copied in between is nobody's.
  const row = await findBlob(root, id)
  if (row === null || row.releasedAt !== null) return to.remove({ id, upload: row?.upload ?? null, isWhole: true })
  if (copied === 'damaged') return void moved.damaged.push(id)
  if (copied === null) return void ((await to.has(id)) ? moved.there++ : moved.missing.push(id))
  moved.moved++
  moved.movedBytes += copied
}

/** Returns the number of bytes; null: the source has none. Fails with `DamagedError`, and leaves nothing then. */
async function copy(
  root: Knex,
  { id, from, to, known }: { id: BlobId; from: BlobPlace; to: BlobPlace; known: KnownBytes | null },
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
    // Before the place has them under their name.
    if (known !== null && !isWhatWasStored(known, { bytes, sha256: read.copy().digest('hex') }))
      throw new DamagedError()
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

const isWhatWasStored = (known: KnownBytes, read: { bytes: number; sha256: string }): boolean =>
  read.bytes === known.sizeBytes && (known.sha256 === null || read.sha256 === known.sha256)
