import type { BlobId } from '../lib/ids.ts'
import { z } from 'zod'

/**
 * Bytes that came as base64 in a body and are stored already: the rest of the server sees what they are, never the bytes.
 * As JSON it is their digest, so two requests with the same bytes are the same request.
 */
export class StoredContent {
  /** The place where the bytes are stored; a new one for each request. */
  readonly blobId: BlobId
  readonly sha256: string
  readonly sizeBytes: number
  /** The first of them, at most `headBytes`. */
  readonly head: Uint8Array

  constructor(stored: { blobId: BlobId; sha256: string; sizeBytes: number; head: Uint8Array }) {
    this.blobId = stored.blobId
    this.sha256 = stored.sha256
    this.sizeBytes = stored.sizeBytes
    this.head = stored.head
  }

  toJSON(): { sha256: string; sizeBytes: number } {
    return { sha256: this.sha256, sizeBytes: this.sizeBytes }
  }
}

/** The bytes that are kept in memory of stored content, to find out what it is. */
export const headBytes = 8 * 1024

/** The key of a body whose value is stored as it comes, in routes with `streamed`. */
export const storedContent = z
  .custom<StoredContent>((value) => value instanceof StoredContent, 'must be text in base64')
  .meta({
    description: 'The bytes, as base64 with padding (RFC 4648, section 4).',
    override: { type: 'string', contentEncoding: 'base64' },
  })
