import { createHash } from 'node:crypto'
import { callIdentity } from '../../../shared/runs/call-identity.ts'

/**
 * Returns the fingerprint of a tool call: SHA-256 (hex) over its name and its input as the harness sent it, before secrets are
 * taken out: a person allows this very call, and not one that only looks the same.
 */
export function callDigest(name: string, input: unknown): string {
  return createHash('sha256').update(callIdentity(name, input)).digest('hex')
}
