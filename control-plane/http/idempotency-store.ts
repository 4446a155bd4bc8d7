import { z } from 'zod'
import type { Db } from '../db/open.ts'

const headers = z.string().transform((text) => z.record(z.string(), z.string()).parse(JSON.parse(text)))
const rowSchema = z.object({
  request_hash: z.string(),
  state: z.string(),
  status: z.number().nullable(),
  headers: headers.nullable(),
  body: z.string().nullable(),
  created_at: z.number(),
  expires_at: z.number(),
})

export interface NewKey {
  scopeHash: string
  requestHash: string
  state: string
  createdAt: number
  expiresAt: number
}

/** False when the key is taken. */
export async function claimKey(db: Db, row: NewKey): Promise<boolean> {
  const inserted: unknown[] = await db('idempotency')
    .insert({
      scope_hash: row.scopeHash,
      request_hash: row.requestHash,
      state: row.state,
      created_at: row.createdAt,
      expires_at: row.expiresAt,
    })
    .onConflict('scope_hash')
    .ignore()
    .returning('scope_hash')
  return inserted.length > 0
}

export async function findKey(db: Db, scopeHash: string) {
  const found: unknown = await db('idempotency').where({ scope_hash: scopeHash }).first()
  if (found === undefined) return null
  const row = rowSchema.parse(found)
  return {
    requestHash: row.request_hash,
    state: row.state,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    answer: { status: row.status ?? 204, headers: row.headers ?? {}, body: row.body },
  }
}

export interface HeldKey {
  scopeHash: string
  state: string
}

/** False when the claim is no longer the caller's. */
export async function completeKey(
  db: Db,
  row: HeldKey & { status: number; headers: Record<string, string>; body: string | null },
): Promise<boolean> {
  const changed = await held(db, row).update({
    state: 'done',
    status: row.status,
    headers: JSON.stringify(row.headers),
    body: row.body,
  })
  return changed === 1
}

export async function freeKey(db: Db, row: HeldKey): Promise<void> {
  await held(db, row).delete()
}

export async function markKeyUnknown(db: Db, row: HeldKey): Promise<void> {
  await held(db, row).update({ state: 'unknown' })
}

const held = (db: Db, row: HeldKey) => db('idempotency').where({ scope_hash: row.scopeHash, state: row.state })

export async function removeExpiredKey(db: Db, scopeHash: string, now: number): Promise<void> {
  await db('idempotency').where({ scope_hash: scopeHash }).where('expires_at', '<=', now).delete()
}

/** For the sweep. Returns how many were removed. */
export async function pruneKeys(db: Db, now: number): Promise<number> {
  return db('idempotency').where('expires_at', '<=', now).delete()
}
