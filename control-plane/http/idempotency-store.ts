import { z } from 'zod'
import { nullableInt, nullableJson, nullableText, text, time } from '../db/columns.ts'
import { deleteInBatches } from '../db/dialect.ts'
import type { Db } from '../db/open.ts'
import { table, type RowOf } from '../db/table.ts'

const keys = table('idempotency', {
  scopeHash: text,
  requestHash: text,
  state: text,
  status: nullableInt,
  headers: nullableJson(z.record(z.string(), z.string())),
  body: nullableText,
  createdAt: time,
  expiresAt: time,
})
type KeyRow = RowOf<typeof keys>

type NewKey = Omit<KeyRow, 'status' | 'headers' | 'body'>

/** False when the key is taken. */
export async function claimKey(db: Db, row: NewKey): Promise<boolean> {
  const inserted: unknown[] = await db('idempotency')
    .insert(keys.toColumns(row))
    .onConflict('scope_hash')
    .ignore()
    .returning('scope_hash')
  return inserted.length > 0
}

export async function findKey(db: Db, scopeHash: string) {
  const found = await keys.find(db, { scopeHash })
  if (found === null) return null
  const { status, headers, body, ...key } = found
  return { ...key, answer: { status: status ?? 204, headers: headers ?? {}, body } }
}

type HeldKey = Pick<KeyRow, 'scopeHash' | 'state'>

/** False when the claim is no longer the caller's. */
export async function completeKey(
  db: Db,
  row: HeldKey & { status: number; headers: Record<string, string>; body: string | null },
): Promise<boolean> {
  const { status, headers, body } = row
  const changed = await held(db, row).update(keys.toColumns({ state: 'done', status, headers, body }))
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

/** Removes keys that have expired. Returns their number. */
export async function pruneKeys(db: Db, now: number): Promise<number> {
  return deleteInBatches(db, 'idempotency', db('idempotency').where('expires_at', '<=', now))
}
