import { createHash } from 'node:crypto'
import { callIdentity } from '../../../shared/runs/call-identity.ts'

/**
 * The fingerprint of a tool call: SHA-256 (hex) over its identity. Of the input as the harness sent it, before secrets are
 * taken out: what a person allowed once is this very call and not one that only looks the same.
 */
export function callDigest(name: string, input: unknown): string {
  return createHash('sha256').update(callIdentity(name, input)).digest('hex')
}
