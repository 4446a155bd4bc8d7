import type { BlobId, WorkspaceUuid } from '../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { Knex } from 'knex'
import { headBytes } from '../../shared/api/stored-content.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Tx } from '../db/open.ts'
import { afterCommit } from '../db/transaction.ts'
import type { Log } from '../process/log.ts'
import type { ByteRange, GoneBlob, UsedPlace } from './place.ts'
import {
  giveUpBlob,
  insertBlob,
  listReleased,
  listReleasedOf,
  noteUpload,
  postponeRemoval,
  releaseBlobs,
  releaseForgotten,
  removeBlob,
  type BlobRow,
} from './store.ts'

/** Bytes that lie in their place and belong to nobody yet: `ownBlob` makes them somebody's. */
export interface StoredBytes {
  blobId: BlobId
  sha256: string
  sizeBytes: number
  /** The first of them, at most `headBytes`. */
  head: Uint8Array
}

/** The time after which a blob that nobody came to own is removed. */
export const forgottenMs = 3_600_000
/** Blobs that one pass of the sweep removes. */
const sweptAtOnce = 500

/**
 * Stores bytes, gives them out and removes them; one blob for each thing that is stored, never shared. The database says what
 * there is (`store.ts`); this keeps the place in step with it, whichever of the two fails.
 */
export class Blobs {
  private readonly root: Knex
  private readonly place: UsedPlace
  private readonly world: World
  private readonly log: Log
  private removal: Promise<void> = Promise.resolve()

  constructor(options: { root: Knex; place: UsedPlace; world: World; log: Log }) {
    this.root = options.root
    this.place = options.place
    this.world = options.world
    this.log = options.log
  }

  /** Fails with `StorageError`, or as the source does; nothing is left then. */
  async put(source: AsyncIterable<Uint8Array>, { workspaceId }: { workspaceId: WorkspaceUuid }): Promise<StoredBytes> {
    const id = this.world.id('blb_')
    await insertBlob(this.root, { id, workspaceId, createdAt: this.world.now() })
    const hash = createHash('sha256')
    const head: Uint8Array[] = []
    let sizeBytes = 0
    async function* measured() {
      for await (const piece of source) {
        hash.update(piece)
        if (sizeBytes < headBytes) head.push(piece.subarray(0, headBytes - sizeBytes))
        sizeBytes += piece.length
        yield piece
      }
    }
    try {
      await this.place.put({ id, beginUpload: (upload) => noteUpload(this.root, id, upload) }, measured())
      return { blobId: id, sha256: hash.digest('hex'), sizeBytes, head: Buffer.concat(head) }
    } catch (error) {
      await this.giveUp(id, { isWhole: false })
      throw error
    }
  }

  /** `sizeBytes`: of all of it. Fails with `BlobMissingError`, and with `StorageError` also where it has another size. */
  open(id: string, range?: ByteRange, sizeBytes?: number): Promise<Readable> {
    return this.place.open(id, range, sizeBytes)
  }

  /** Returns whether the bytes are there. Fails with `StorageError`. */
  has(id: BlobId): Promise<boolean> {
    return this.place.has(id)
  }

  /** Removes the blob, unless somebody owns it. Never fails: the sweep does what cannot be done now. */
  async giveUp(id: BlobId, { isWhole } = { isWhole: true }): Promise<void> {
    try {
      const row = await giveUpBlob(this.root, id, this.world.now())
      if (row === null || row.releasedAt !== null) await this.remove({ id, upload: row?.upload ?? null, isWhole })
    } catch (error) {
      this.log.warn({ err: error, blob: id }, 'the bytes of an upload could not be removed; the sweep tries again')
    }
  }

  /** Releases blobs with the transaction; their bytes go as soon as it is committed. */
  async release(tx: Tx, ids: readonly BlobId[]): Promise<void> {
    if (ids.length === 0) return
    await releaseBlobs(tx, ids, this.world.now())
    afterCommit(tx, () => this.removeSoon(ids))
  }

  /** Makes one pass of the sweep, which is safe on several replicas at once, since removing what is gone does nothing. */
  async sweep(now: number): Promise<void> {
    await releaseForgotten(this.root, now - forgottenMs, now)
    for (const blob of await listReleased(this.root, sweptAtOnce)) {
      try {
        await this.removeRow(blob)
      } catch (error) {
        await postponeRemoval(this.root, blob.id, now)
        throw error
      }
    }
  }

  /** Resolves when all bytes are removed that were to be removed soon. */
  async idle(): Promise<void> {
    await this.removal
  }

  private removeSoon(ids: readonly string[]): void {
    const work = async () => {
      for (const blob of await listReleasedOf(this.root, ids)) await this.removeRow(blob)
    }
    this.removal = this.removal.then(work).catch((error: unknown) => {
      this.log.warn({ err: error }, 'bytes could not be removed; the sweep tries again')
    })
  }

  /** A blob that somebody owned was whole; of the rest nobody knows whether its server lived to the end of the upload. */
  private removeRow({ id, upload, ownedAt }: BlobRow): Promise<void> {
    return this.remove({ id, upload, isWhole: ownedAt !== null })
  }

  /** The bytes first: a row without bytes is removed again, bytes without a row never. */
  private async remove(blob: GoneBlob): Promise<void> {
    await this.place.remove(blob)
    await removeBlob(this.root, blob.id)
  }
}
