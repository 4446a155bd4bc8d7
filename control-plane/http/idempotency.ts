import { createHash } from 'node:crypto'
import { fail } from '../../shared/api/errors.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Db } from '../db/open.ts'
import { VaultError, type Vault } from '../vault/vault.ts'
import { callerKey, type Caller } from './callers.ts'
import { claimKey, completeKey, findKey, freeKey, markKeyUnknown, removeExpiredKey } from './idempotency-store.ts'

/**
 * The Idempotency-Key header.
 *
 *   (none) --claim--> running:<instance> --the effect's own transaction--> done --24 h--> (none)
 *                          |-- nothing was done (refused, or no connection was to be had) --> (none)
 *                          |-- an unexpected failure --------> unknown --24 h--> (none)
 *
 * The claim commits before the work begins, so that two requests with one key never both work; the answer is stored in
 * the transaction of the effect, so that a kill leaves either both or neither. A claim whose process is gone counts as
 * unknown. Two requests that race for the claim are told apart by the row's primary key.
 */
export interface Idempotency {
  /** Claims the key, or returns the stored answer. Fails with one of the three 409 codes. */
  begin(request: KeyedRequest): Promise<KeyClaim | Replay>
  /** Stores the answer within the transaction of the effect; encrypted when it holds a secret. */
  complete(tx: Db, claim: KeyClaim, answer: StoredAnswer, isSecret: boolean): Promise<void>
  /**
   * Gives up the claim after a failure: `nothing` was done, so the key is free again, or it is not known what was. Fails when that could
   * not be written at once; it is then tried again for a while.
   */
  release(claim: KeyClaim, effect: 'nothing' | 'unknown'): Promise<void>
}

export interface KeyedRequest {
  key: string
  caller: Caller
  method: string
  path: string
  search: string
  body: unknown
}
export interface StoredAnswer {
  status: number
  headers: Record<string, string>
  /** JSON text; null for 204. */
  body: string | null
}
export interface KeyClaim {
  kind: 'claim'
  scopeHash: string
  state: string
}
export interface Replay {
  kind: 'replay'
  answer: StoredAnswer
}

const keptMs = 24 * 3_600_000
/** A claim by another process this old is taken for abandoned, where there may be other processes. */
const abandonedMs = 10 * 60_000
/** The tries of a release. They take some minutes, in the background after the first one. */
const releaseTries = 20
const releaseAgainMs = 5_000

export interface IdempotencyOptions {
  db: Db
  world: World
  /** Names this start of this process. */
  instance: string
  /** True when no other process serves this database (SQLite): claims of others are then those of dead ones. */
  isSole: boolean
  /** Encrypts answers that hold a secret. */
  vault: Pick<Vault, 'seal' | 'open'>
}

export function createIdempotency(options: IdempotencyOptions): Idempotency {
  const state = `running:${options.instance}`
  return {
    async begin(request) {
      // The hash covers the key, which is kept nowhere: a short secret in the body cannot be guessed from its hash.
      const requestHash = hash([request.key, request.search, request.body])
      const hashes = { scopeHash: scopeOf(request), requestHash }
      const now = options.world.now()
      const row = { ...hashes, state, createdAt: now, expiresAt: now + keptMs }
      const claim: KeyClaim = { kind: 'claim', scopeHash: hashes.scopeHash, state }
      // The claim is tried twice: the first look may find only an expired row in the way.
      for (let attempt = 0; attempt < 2; attempt++) {
        if (await claimKey(options.db, row)) return claim
        const stored = await findKey(options.db, hashes.scopeHash)
        if (stored !== null && stored.expiresAt > now) return settle(options, { stored, ...hashes })
        await removeExpiredKey(options.db, hashes.scopeHash, now)
      }
      return fail('idempotency_request_in_progress', { param: 'Idempotency-Key' })
    },
    async complete(tx, claim, answer, isSecret) {
      const { body } = answer
      const kept = isSecret && body !== null ? sealed(options.vault, claim.scopeHash, body) : body
      const isOurs = await completeKey(tx, { ...claim, ...answer, body: kept })
      if (!isOurs) throw new Error('the claim of an idempotency key was lost')
    },
    release: (claim, effect) => release(options, { claim, effect, triesLeft: releaseTries }),
  }
}

/** The trouble that made a write fail may keep its key from being released as well. Until then the key counts as at work. */
async function release(
  options: IdempotencyOptions,
  { claim, effect, triesLeft }: { claim: KeyClaim; effect: 'nothing' | 'unknown'; triesLeft: number },
): Promise<void> {
  try {
    await (effect === 'nothing' ? freeKey : markKeyUnknown)(options.db, claim)
  } catch (error) {
    const again = () => release(options, { claim, effect, triesLeft: triesLeft - 1 })
    if (triesLeft > 1) options.world.after(releaseAgainMs, () => void again().catch(() => undefined))
    throw error
  }
}

type StoredKey = NonNullable<Awaited<ReturnType<typeof findKey>>>

function settle(
  options: IdempotencyOptions,
  { stored, requestHash, scopeHash }: { stored: StoredKey; requestHash: string; scopeHash: string },
): Replay {
  const param = 'Idempotency-Key'
  if (stored.requestHash !== requestHash) fail('idempotency_key_reused', { param })
  if (stored.state === 'done') return { kind: 'replay', answer: opened(options.vault, scopeHash, stored.answer) }
  if (stored.state === 'unknown') fail('idempotency_effect_unknown', { param })
  const isMine = stored.state === `running:${options.instance}`
  const isAbandoned = !isMine && (options.isSole || stored.createdAt < options.world.now() - abandonedMs)
  return fail(isAbandoned ? 'idempotency_effect_unknown' : 'idempotency_request_in_progress', { param })
}

/** The mark of a sealed body: no JSON begins so. */
const sealMark = 'sealed:'

const sealed = (vault: Pick<Vault, 'seal'>, scopeHash: string, body: string): string =>
  sealMark + vault.seal(scopeHash, body).toString('base64')

function opened(vault: Pick<Vault, 'open'>, scopeHash: string, answer: StoredAnswer): StoredAnswer {
  if (answer.body?.startsWith(sealMark) !== true) return answer
  try {
    return { ...answer, body: vault.open(scopeHash, Buffer.from(answer.body.slice(sealMark.length), 'base64')) }
  } catch (error) {
    if (!(error instanceof VaultError)) throw error
    // The answer was sealed with another replica's key, or with one from before, so the secret is not known here.
    return fail('idempotency_effect_unknown', { param: 'Idempotency-Key', cause: error })
  }
}

/** The key of the header, or null when none is sent. Fails with `idempotency_invalid_key`. */
export function readKey(header: string | undefined, need: 'required' | 'accepted' | 'none'): string | null {
  if (need === 'none') return null
  if (header === undefined) {
    if (need === 'accepted') return null
    return fail('idempotency_invalid_key', {
      message: 'This route needs an Idempotency-Key header.',
      param: 'Idempotency-Key',
    })
  }
  // Visible characters only; a space or control character, or a second header (joined by ", "), does not fit.
  if (!/^[^\s\p{Cc}]{1,255}$/u.test(header)) return fail('idempotency_invalid_key', { param: 'Idempotency-Key' })
  return header
}

function scopeOf({ caller, method, path, key }: KeyedRequest): string {
  return hash([callerKey(caller), caller.workspaceId, method, path, key])
}

function hash(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value, sortKeys)).digest('hex')
}

/** Names of one object that are put in order. */
const sortedKeys = 1_000

/** The order of keys is no difference between two bodies; that of a large object is, since sorting it takes long. */
function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value)
  return entries.length > sortedKeys ? value : Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}
