import { createHash } from 'node:crypto'
import { canonicalJson } from '../../shared/lib/canonical-json.ts'

/**
 * The fingerprint of a tool call: SHA-256 (hex) over its name and its input. Of the input as the harness sent it, before
 * secrets are taken out: what a person allowed once is this very call and not one that only looks the same.
 */
export function callDigest(name: string, input: unknown): string {
  return createHash('sha256')
    .update(canonicalJson([name, input]))
    .digest('hex')
}
