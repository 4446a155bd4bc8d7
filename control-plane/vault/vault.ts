import { createCipheriv, createDecipheriv, createHash } from 'node:crypto'
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { World } from '../../shared/lib/world.ts'
import { makeFolder } from '../process/make-folder.ts'

/**
 * Encrypts the values of secrets with AES-256-GCM and a fresh nonce each. A value is bound to the id of its secret, so
 * that rows cannot be exchanged. A second key opens values for as long as a change of the key lasts. The key comes from the environment, or from a file that is made when the first value
 * is sealed.
 */
export interface Vault {
  seal(secretId: string, value: string): Buffer
  /** Throws `VaultError` when the value was sealed with another key, or the row was tampered with. */
  open(secretId: string, sealed: Buffer): string
  /** Tells whether the value was sealed with the key that seals now. */
  isSealedNow(secretId: string, sealed: Buffer): boolean
  /** Identifies the key without revealing it; null while there is none. */
  fingerprint(): string | null
  /** That of the key which opens values and seals none; null: there is no other key. */
  otherFingerprint(): string | null
}

export class VaultError extends Error {
  override name = 'VaultError'
}

export type KeySource = (
  | /** 32 bytes as hex or base64. */
    { kind: 'given'; text: string }
  | { kind: 'file'; path: string }
  /** Lost with the process, like the in-memory database that it is for. */
  | { kind: 'memory' }
) & {
  /** A key, as hex or base64, that opens values which were sealed with it: the next one, or the one before. Left out: there is none. */
  other?: string | null
}

const algorithm = 'aes-256-gcm'
const [nonceBytes, tagBytes, keyBytes] = [12, 16, 32]

export function createVault(source: KeySource, world: World): Vault {
  let key: Buffer | null = null
  const other = source.other == null ? null : neededKey(source.other)
  const known = (): Buffer | null => (key ??= source.kind === 'memory' ? null : readKey(source))
  const needed = (): Buffer => (key = known() ?? makeKey(source, world))
  return {
    seal(secretId, value) {
      const nonce = world.bytes(nonceBytes)
      const cipher = createCipheriv(algorithm, needed(), nonce).setAAD(Buffer.from(secretId))
      return Buffer.concat([nonce, cipher.update(value, 'utf8'), cipher.final(), cipher.getAuthTag()])
    },
    open(secretId, sealed) {
      const keys = [known(), other].filter((each) => each !== null)
      if (keys.length === 0) throw new VaultError('the key of the secrets is missing')
      let trouble: unknown = null
      for (const each of keys) {
        try {
          return openedWith(each, secretId, sealed)
        } catch (error) {
          trouble ??= error
        }
      }
      throw new VaultError('a secret was sealed with another key, or its row was changed', { cause: trouble })
    },
    isSealedNow(secretId, sealed) {
      const present = known()
      try {
        return present !== null && openedWith(present, secretId, sealed) !== null
      } catch {
        return false
      }
    },
    fingerprint: () => fingerprintOf(known()),
    otherFingerprint: () => fingerprintOf(other),
  }
}

function openedWith(key: Buffer, secretId: string, sealed: Buffer): string {
  const nonce = sealed.subarray(0, nonceBytes)
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
    .setAAD(Buffer.from(secretId))
    .setAuthTag(sealed.subarray(-tagBytes))
  const text = decipher.update(sealed.subarray(nonceBytes, -tagBytes))
  return Buffer.concat([text, decipher.final()]).toString('utf8')
}

const fingerprintOf = (key: Buffer | null): string | null =>
  key && createHash('sha256').update('svc-secrets').update(key).digest('hex').slice(0, 16)

function neededKey(text: string): Buffer {
  const key = parseKey(text)
  if (key === null) throw new VaultError('the other key of the secrets is not 32 bytes as hex or base64')
  return key
}

/** The key in a text; null when it is not a key. */
export function parseKey(text: string): Buffer | null {
  const trimmed = text.trim()
  const key = /^[0-9a-f]{64}$/i.test(trimmed) ? Buffer.from(trimmed, 'hex') : Buffer.from(trimmed, 'base64')
  return key.length === keyBytes ? key : null
}

function readKey(source: KeySource & { kind: 'given' | 'file' }): Buffer | null {
  if (source.kind === 'file' && !existsSync(source.path)) return null
  const key = parseKey(source.kind === 'given' ? source.text : readFileSync(source.path, 'utf8'))
  if (key === null) throw new VaultError('the key of the secrets is not 32 bytes as hex or base64')
  return key
}

/**
 * Written completely or not at all, and never over another key: two processes that make it at once end with the same
 * key.
 */
function makeKey(source: KeySource, world: World): Buffer {
  const fresh = Buffer.from(world.bytes(keyBytes))
  if (source.kind !== 'file') return fresh
  const { path } = source
  const draft = `${path}.${world.uuid()}`
  makeFolder(dirname(path))
  writeFileSync(draft, `${fresh.toString('base64')}\n`, { mode: 0o600, flag: 'wx', flush: true })
  try {
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
  return readKey({ kind: 'file', path })!
}
