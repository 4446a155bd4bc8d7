import { z } from 'zod'
import { newOutbox, oldestOpenTransaction } from './dialect.ts'
import type { Db } from './handle.ts'

export interface OutboxRow {
  seq: number
  /** A `Topic`, or one of a later release that runs beside this one. */
  topic: string
  /** Id of the run or device concerned. */
  key: string
  payload: Record<string, unknown>
}

const rowSchema = z.object({
  seq: z.coerce.number(),
  topic: z.string(),
  key: z.string(),
  payload: z.string(),
  xid: z.coerce.number(),
  horizon: z.coerce.number(),
})

/**
 * The position of a reader. Numbers of rows are given out before their transactions end, so a reader that went by them alone would
 * pass a row that is committed late. On PostgreSQL it goes by transactions: all below `from` had ended when they were
 * read, and the reader has every row of theirs. The reader waits for no transaction: one of another database of the same
 * server may stay open for hours, which holds back `from`, but no row. SQLite has one writer, so there `seq` is enough.
 */
export interface OutboxCursor {
  from: number
  /** Rows of later transactions that the reader has: the number of each, with its transaction. */
  given: ReadonlyMap<number, number>
  seq: number
}

/** Rows that the reader has not got yet, in the order of their numbers. A later call may return lower numbers. */
export async function listOutbox(
  db: Db,
  cursor: OutboxCursor,
  limit: number,
): Promise<{ rows: OutboxRow[]; next: OutboxCursor; hasMore: boolean }> {
  const found: unknown[] = await newOutbox(db, cursor).orderBy('seq').limit(limit)
  const parsed = found.map((row) => rowSchema.parse(row))
  const rows = parsed.map(({ seq, topic, key, payload }) => ({
    seq,
    topic,
    key,
    payload: JSON.parse(payload) as Record<string, unknown>,
  }))
  const last = parsed.at(-1)
  if (last === undefined) return { rows, next: cursor, hasMore: false }
  const hasMore = rows.length === limit
  // A page that is full may have left out rows of transactions below its horizon.
  const from = hasMore ? cursor.from : last.horizon
  const given = [...cursor.given, ...parsed.map(({ seq, xid }) => [seq, xid] as const)].filter(([, xid]) => xid >= from)
  return { rows, next: { from, given: new Map(given), seq: last.seq }, hasMore }
}

/** The position of a reader that starts now and needs nothing that came before. */
export async function outboxEnd(db: Db): Promise<OutboxCursor> {
  const last: unknown = await db('outbox').max({ seq: 'seq' }).first()
  const seq = Number((last as { seq: unknown } | undefined)?.seq ?? 0)
  const start = { from: await oldestOpenTransaction(db), given: new Map<number, number>(), seq }
  const there: unknown[] = await newOutbox(db, start)
  return { ...start, given: new Map(there.map((row) => rowSchema.parse(row)).map((row) => [row.seq, row.xid])) }
}

export async function pruneOutbox(db: Db, before: number): Promise<number> {
  return db('outbox').where('created_at', '<', before).delete()
}
