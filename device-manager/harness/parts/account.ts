import { createHash } from 'node:crypto'

/** A name for an account that tells apart accounts and does not say whose it is: 32 hex digits of a SHA-256. */
export const accountDigest = (harness: string, ...parts: readonly string[]): string =>
  createHash('sha256')
    .update([harness, ...parts].join('\0'))
    .digest('hex')
    .slice(0, 32)
