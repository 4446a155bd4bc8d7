import type { Knex } from 'knex'
import type { Db } from './open.ts'

/** The only file that asks which database it is. */
export type Dialect = 'sqlite' | 'postgres'

export function dialectOf(url: string): Dialect {
  return /^postgres(ql)?:\/\//.test(url) ? 'postgres' : 'sqlite'
}

export function dialectOfDb(db: Db): Dialect {
  const client = (db as Knex).client as { config: { client: unknown } }
  return client.config.client === 'pg' ? 'postgres' : 'sqlite'
}

/**
 * Locks the rows a query reads until the transaction ends. SQLite has one writer, so there is nothing to lock. Not the
 * strongest lock there is: that one would also hold up everybody who inserts a row that refers to these (each wake refers to
 * its workspace), and two transactions that do both would wait for each other.
 */
export function lockRows<T extends Knex.QueryBuilder>(query: T, skipLocked = false): T {
  const client = (query as unknown as { client: { config: { client: unknown } } }).client
  if (client.config.client !== 'pg') return query
  const locked = query.forNoKeyUpdate()
  return (skipLocked ? locked.skipLocked() : locked) as T
}

/** Other transactions that take the same lock wait until this one ended. SQLite has one writer, so there is nothing to lock. */
export async function lockTable(db: Db, table: 'users'): Promise<void> {
  if (dialectOfDb(db) === 'postgres') await db.raw('lock table ?? in share row exclusive mode', [table])
}

/**
 * Transactions that take the same name wait for each other, and each sees what those before it committed. For a decision
 * about rows that others change without a row in common.
 */
export async function lockName(db: Db, name: string): Promise<void> {
  if (dialectOfDb(db) === 'postgres') await db.raw('select pg_advisory_xact_lock(hashtextextended(?, 0))', [name])
}

/**
 * Rows of a table that other transactions can no longer precede. On PostgreSQL a later `seq` may be committed before an
 * earlier one, so a reader stops at the oldest transaction still open.
 */
export function settledOutbox(db: Db, query: Knex.QueryBuilder): Knex.QueryBuilder {
  if (dialectOfDb(db) === 'sqlite') return query
  return query.whereRaw('xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint')
}

/** Wakes every process that listens; delivered when the transaction commits. Without effect on SQLite. */
export async function notify(db: Db, channel: string, payload: string): Promise<void> {
  if (dialectOfDb(db) === 'postgres') await db.raw('select pg_notify(?, ?)', [channel, payload])
}

export type DatabaseTrouble = 'transient_conflict' | 'database_unavailable' | 'query_timeout' | 'duplicate' | null

const byCode: Record<string, DatabaseTrouble> = {
  SQLITE_BUSY: 'transient_conflict',
  SQLITE_BUSY_SNAPSHOT: 'transient_conflict',
  SQLITE_LOCKED: 'transient_conflict',
  SQLITE_FULL: 'database_unavailable',
  SQLITE_IOERR: 'database_unavailable',
  SQLITE_CANTOPEN: 'database_unavailable',
  SQLITE_READONLY: 'database_unavailable',
  SQLITE_CONSTRAINT_UNIQUE: 'duplicate',
  SQLITE_CONSTRAINT_PRIMARYKEY: 'duplicate',
  '40001': 'transient_conflict',
  '40P01': 'transient_conflict',
  '55P03': 'transient_conflict',
  '23505': 'duplicate',
  '57014': 'query_timeout',
  '53300': 'database_unavailable',
  '53400': 'database_unavailable',
  '57P01': 'database_unavailable',
  '57P02': 'database_unavailable',
  '57P03': 'database_unavailable',
  '25P03': 'database_unavailable',
  ECONNREFUSED: 'database_unavailable',
  ECONNRESET: 'database_unavailable',
  ENOENT: 'database_unavailable',
  EPIPE: 'database_unavailable',
}

/** PostgreSQL ended the transaction, whole, so that another one could go on: a deadlock, or two that would not be serial. */
export function wasUndoneForAnother(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return code === '40P01' || code === '40001'
}

/** What an error of the database means to a caller; null for an error that is not about the database's state. */
export function troubleOf(error: unknown): DatabaseTrouble {
  if (!(error instanceof Error)) return null
  if (error.name === 'KnexTimeoutError') return /pool/i.test(error.message) ? 'database_unavailable' : 'query_timeout'
  const code = (error as { code?: unknown }).code
  if (typeof code === 'string' && code in byCode) return byCode[code] ?? null
  if (typeof code === 'string' && /^SQLITE_(IOERR|CORRUPT|NOTADB)/.test(code)) return 'database_unavailable'
  if (typeof code === 'string' && code.startsWith('08')) return 'database_unavailable'
  if (/Connection terminated|connection is closed|Unable to acquire a connection/i.test(error.message))
    return 'database_unavailable'
  return null
}
