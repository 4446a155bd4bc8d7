import { certificateTrouble } from '../../shared/lib/certificate-trouble.ts'
import type { BlobId } from '../../shared/lib/ids.ts'
import type { Readable } from 'node:stream'

/**
 * A place for the bytes of blobs: a folder or a bucket. A place knows ids and bytes only; which blobs there are, and whose they are, is
 * written in the database (`store.ts`).
 */
export interface BlobPlace {
  /** The name by which an operator knows it. */
  readonly name: string
  /**
   * Writes all bytes of the source under the id, and resolves when they would outlive a loss of power. What a failure or a
   * kill leaves behind is found by `remove`. Fails with `StorageError`, or as the source does.
   */
  put(blob: NewBlob, source: AsyncIterable<Uint8Array>): Promise<void>
  /**
   * Opens the bytes; `sizeBytes`: how many there are in all, as the database knows. Fails with `BlobMissingError`, and with
   * `StorageError` also where there are more or fewer.
   */
  open(id: string, range?: ByteRange, sizeBytes?: number): Promise<Readable>
  /** Returns whether the bytes are there. Fails with `StorageError`. */
  has(id: string): Promise<boolean>
  /** Removes the bytes, and what an upload left; nothing to remove is no failure. */
  remove(blob: GoneBlob): Promise<void>
  /** Returns whether this place belongs to the database with this mark. */
  isMarked(mark: string): Promise<boolean>
  mark(mark: string): Promise<void>
  /** Uses the place from here on for the database with this mark; its blobs lie apart from those of others. */
  use(mark: string): void
}

/** The acts of a server at a place that is its own. */
export type UsedPlace = Pick<BlobPlace, 'name' | 'put' | 'open' | 'has' | 'remove'>

export interface NewBlob {
  id: string
  /** Called before the first bytes of an upload in parts, with the name by which it can be given up. */
  beginUpload: (upload: string) => Promise<void>
}

export interface GoneBlob {
  id: BlobId
  upload: string | null
  /** The bytes were stored to the end. Else there may be an upload whose name nobody came to note. */
  isWhole: boolean
}

/** A range of bytes from `start` up to, and without, `end`. */
export interface ByteRange {
  start: number
  end: number
}

/** The place cannot be reached, is full, or fails otherwise. */
export class StorageError extends Error {
  override readonly name = 'StorageError'
  /** The place answers, and refuses what was asked: a wrong key, a bucket that does not exist. */
  readonly isRefusal: boolean

  constructor(place: string, cause: unknown, { isRefusal = false } = {}) {
    const why = certificateTrouble(cause) ?? (cause instanceof Error ? cause.message : String(cause))
    super(`the storage of files (${place}) failed: ${why}`, { cause })
    this.isRefusal = isRefusal
  }
}

/** A restored backup, or a disk that lost something, has bytes in part: nobody is to take them for the whole. */
export const wrongSize = (place: string, { id, found, sizeBytes }: { id: string; found: number; sizeBytes: number }) =>
  new StorageError(place, new Error(`${id} has ${found} bytes of ${sizeBytes}`))

/** Says that there are no bytes under this id. */
export class BlobMissingError extends Error {
  override readonly name = 'BlobMissingError'

  constructor(id: string) {
    super(`the bytes of ${id} are not there`)
  }
}
