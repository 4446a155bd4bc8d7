import type { BlobId } from '../../shared/lib/ids.ts'
import { nullableText, nullableTime, time } from '../db/columns.ts'
import { blobId, workspaceUuid } from '../db/id-columns.ts'
import type { Db } from '../db/open.ts'
import { expectOnlyWriter, table, type RowOf } from '../db/table.ts'
import { command } from '../db/statement.ts'

/**
 * The rows of blobs. A row is written before the first byte, and removed after the last: no bytes lie anywhere without one.
 *
 *   intended --the transaction that needs the blob--> owned --a transaction that needs it no more--> released
 *      |-- given up, or an hour without an owner --> released
 *   released --its bytes are removed--> (none)
 *
 * Whoever owns and whoever releases write the same row under a condition, so of both at once one is refused.
 */
const blobs = table('blobs', {
  id: blobId,
  workspaceId: workspaceUuid,
  /** The name of an upload in parts, which leaves parts behind when it is cut off. */
  upload: nullableText,
  createdAt: time,
  ownedAt: nullableTime,
  releasedAt: nullableTime,
})
export type BlobRow = RowOf<typeof blobs>

export async function insertBlob(db: Db, blob: Pick<BlobRow, 'id' | 'workspaceId' | 'createdAt'>): Promise<void> {
  await blobs.insert(db, blob)
}

export async function noteUpload(db: Db, id: BlobId, upload: string): Promise<void> {
  await db('blobs').where({ id }).update({ upload })
}

/** Owns the blob in the transaction that needs it. Fails with `transient_conflict` when a sweep took it for forgotten. */
export async function ownBlob(db: Db, id: BlobId, now: number): Promise<void> {
  expectOnlyWriter(
    await db('blobs').where({ id }).whereNull('owned_at').whereNull('released_at').update({ owned_at: now }),
  )
}

// A file may have more versions than a statement takes values, so they are one value.
const release = command('update blobs set released_at = ? where id in ? and released_at is null')

/** Releases the blobs in the transaction that needs them no more. */
export async function releaseBlobs(db: Db, ids: readonly BlobId[], now: number): Promise<void> {
  await release(db, [now, ids])
}

/** Releases a blob that has no owner. Returns its row as it is now; null: there is none. */
export async function giveUpBlob(db: Db, id: BlobId, now: number): Promise<BlobRow | null> {
  await db('blobs').where({ id }).whereNull('owned_at').whereNull('released_at').update({ released_at: now })
  return blobs.find(db, { id })
}

/** Releases what was intended before this time and has no owner. */
export async function releaseForgotten(db: Db, before: number, now: number): Promise<number> {
  return db('blobs')
    .whereNull('owned_at')
    .whereNull('released_at')
    .where('created_at', '<', before)
    .update({ released_at: now })
}

/** Lists released blobs, longest released first. */
export async function listReleased(db: Db, limit: number): Promise<BlobRow[]> {
  return blobs.list(blobs.from(db).whereNotNull('released_at').orderBy('released_at').orderBy('id').limit(limit))
}

const releasedOf = blobs.query('where id in ? and released_at is not null')

/** Lists those of these blobs that are released. */
export async function listReleasedOf(db: Db, ids: readonly string[]): Promise<BlobRow[]> {
  return releasedOf.list(db, [ids])
}

/** Puts a blob whose bytes could not be removed behind the others. */
export async function postponeRemoval(db: Db, id: BlobId, now: number): Promise<void> {
  await db('blobs').where({ id }).whereNotNull('released_at').update({ released_at: now })
}

/** After the bytes are gone. */
export async function removeBlob(db: Db, id: BlobId): Promise<void> {
  await db('blobs').where({ id }).whereNotNull('released_at').delete()
}

export const findBlob = (db: Db, id: BlobId): Promise<BlobRow | null> => blobs.find(db, { id })

/** Lists blobs that somebody owns by their ids, those behind `after`. */
export async function listOwnedBlobs(db: Db, { after, limit }: { after: string; limit: number }): Promise<BlobId[]> {
  const rows = blobs.from(db).where('id', '>', after).whereNotNull('owned_at').whereNull('released_at')
  return (await blobs.list(rows.orderBy('id').limit(limit))).map(({ id }) => id)
}
