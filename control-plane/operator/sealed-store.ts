import { z } from 'zod'
import { text } from '../db/columns.ts'
import type { Db } from '../db/open.ts'

// Every column that is sealed. A test seals something in each, and fails for a column of bytes that is neither here nor known for
// something else.

export interface SealedColumn {
  table: string
  key: string
  column: string
  /** The column from which follows for what the value is sealed, and what stands behind its value. */
  boundTo: string
  purpose: string
}

export const sealedColumns: readonly SealedColumn[] = [
  { table: 'secrets', key: 'id', column: 'sealed', boundTo: 'id', purpose: '' },
  { table: 'connections', key: 'id', column: 'credential', boundTo: 'id', purpose: ':credential' },
  {
    table: 'connection_withdrawals',
    key: 'id',
    column: 'credential',
    boundTo: 'connection_id',
    purpose: ':credential',
  },
  { table: 'connection_sign_ins', key: 'state_hash', column: 'attempt', boundTo: 'connection_id', purpose: ':sign-in' },
  { table: 'connection_clients', key: 'id', column: 'client_secret', boundTo: 'id', purpose: ':client' },
  { table: 'webhooks', key: 'id', column: 'secret', boundTo: 'id', purpose: ':secret' },
  { table: 'webhooks', key: 'id', column: 'old_secret', boundTo: 'id', purpose: ':secret' },
]

const sealedRow = z.object({
  key: text,
  boundTo: text,
  sealed: z.instanceof(Uint8Array).transform((bytes): Buffer => Buffer.from(bytes)),
})
export type SealedRow = z.infer<typeof sealedRow>

/** Lists sealed values of a column by the keys of their rows, those behind `after`. */
export async function listSealed(
  db: Db,
  { table, key, column, boundTo }: SealedColumn,
  { after, limit }: { after: string; limit: number },
): Promise<SealedRow[]> {
  const rows: unknown[] = await db(table)
    .whereNotNull(column)
    .where(key, '>', after)
    .orderBy(key)
    .limit(limit)
    .select({ key, boundTo, sealed: column })
  return rows.map((row) => sealedRow.parse(row))
}

/** Puts the value that is sealed anew in the place of the one that was read. Returns whether that was there still. */
export async function replaceSealed(
  db: Db,
  { table, key, column }: SealedColumn,
  row: SealedRow,
  sealed: Buffer,
): Promise<boolean> {
  return (
    (await db(table)
      .where({ [key]: row.key, [column]: row.sealed })
      .update({ [column]: sealed })) === 1
  )
}
