import { certificateTrouble } from '../../shared/lib/certificate-trouble.ts'
import type { Knex } from 'knex'
import type { Db } from './handle.ts'
import { casesOf, likeContaining } from './like.ts'

/** The only file that asks which database it is. */
export type Dialect = 'sqlite' | 'postgres'

export function dialectOf(url: string): Dialect {
  return /^postgres(ql)?:\/\//.test(url) ? 'postgres' : 'sqlite'
}

export function dialectOfDb(db: Db): Dialect {
  return isPostgres((db as Knex).client) ? 'postgres' : 'sqlite'
}

const isPostgres = (client: unknown): boolean => (client as { driverName: string }).driverName === 'pg'

/**
 * Locks the rows a query reads until the transaction ends. SQLite has one writer, so there is nothing to lock. Not the
 * strongest lock there is: that one would also hold up everybody who inserts a row that refers to these (each wake refers to
 * its workspace), and two transactions that do both would wait for each other.
 */
export function lockRows<T extends Knex.QueryBuilder>(query: T, skipLocked = false): T {
  if (!isPostgres((query as unknown as { client: unknown }).client)) return query
  const locked = query.forNoKeyUpdate()
  return (skipLocked ? locked.skipLocked() : locked) as T
}

/**
 * Locks the table: other transactions that take the same lock wait until this one ended. SQLite has one writer, so there is nothing to
 * lock.
 */
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
 * Takes the name until the transaction ends, unless another transaction has it: false then. SQLite knows no names, so there it
 * is always taken.
 */
export async function tryLockName(db: Db, name: string): Promise<boolean> {
  if (dialectOfDb(db) === 'sqlite') return true
  const asked: { rows: { taken: boolean }[] } = await db.raw(
    'select pg_try_advisory_xact_lock(hashtextextended(?, 0)) as taken',
    [name],
  )
  return asked.rows[0]?.taken === true
}

/** The rows that go in one statement, while a SQLite database does nothing else. */
const rowsAtOnce = 500

/** Deletes all rows of the table that a query finds, by short statements that each are committed by themselves. Returns their number. */
export async function deleteInBatches(root: Db, table: string, rows: Knex.QueryBuilder): Promise<number> {
  for (let sum = 0; ;) {
    const removed = await deleteSome(root, table, { rows, limit: rowsAtOnce })
    sum += removed
    if (removed < rowsAtOnce) return sum
  }
}

/** Deletes at most so many of the rows that a query of the table finds. Returns their number. */
export async function deleteSome(
  db: Db,
  table: string,
  { rows, limit }: { rows: Knex.QueryBuilder; limit: number },
): Promise<number> {
  const isSqlite = dialectOfDb(db) === 'sqlite'
  // The address tells where a row lies. PostgreSQL would compare each row of the table with a plain list of these.
  const [address, isOne] = isSqlite ? ['rowid', 'rowid in ?'] : ['ctid', 'ctid = any(array ?)']
  return db(table)
    .whereRaw(isOne, [rows.clone().limit(limit).select(db.raw(address))])
    .delete()
}

/** The time by the clock of PostgreSQL (ms UTC). null on SQLite, which has that of its process. */
export async function databaseNow(db: Db): Promise<number | null> {
  if (dialectOfDb(db) === 'sqlite') return null
  const sql = 'select (extract(epoch from clock_timestamp()) * 1000)::bigint as now'
  const { rows }: { rows: { now: number }[] } = await db.raw(sql)
  return rows[0]?.now ?? null
}

/** The number below which all transactions have ended (PostgreSQL). */
export const oldestOpen = 'pg_snapshot_xmin(pg_current_snapshot())::text::bigint'

/** Returns the number below which all transactions have ended. 0 on SQLite, which has one writer. */
export async function oldestOpenTransaction(db: Db): Promise<number> {
  if (dialectOfDb(db) === 'sqlite') return 0
  const result: { rows: { xmin: number }[] } = await db.raw(`select ${oldestOpen} as xmin`)
  return result.rows[0]?.xmin ?? 0
}

/** The column, compared and sorted by its characters as JavaScript does: PostgreSQL goes by the language of the database. */
export const byCharacters = (db: Db, column: string): string =>
  dialectOfDb(db) === 'postgres' ? `${column} collate "C"` : column

/**
 * Returns the condition that a column holds the text, whatever the case of its letters. SQLite and a PostgreSQL of the locale `C`
 * know the cases of ASCII letters only, so SQLite gets a function of ours, and PostgreSQL the other letters of the text. SQLite's own
 * `like` also takes many times as long where a long text nearly matches everywhere.
 */
export function holding(query: Knex.QueryBuilder, column: string, text: string): { sql: string; values: string[] } {
  const value = `coalesce(${column}, '')`
  if (!isPostgres((query as unknown as { client: unknown }).client))
    return { sql: `holds_text(${value}, ?)`, values: [text] }
  const { capitals, small } = casesOf(text)
  const like = likeContaining(text)
  const lowered = (of: string) => `translate(lower(${of}), ?, ?)`
  return {
    sql: `${lowered(value)} like ${lowered('?')} escape '\\'`,
    values: [capitals, small, like, capitals, small],
  }
}

/**
 * PostgreSQL compresses what is written to a large column from now on by LZ4, where it knows that: in a fifth of the
 * time that its own way takes. SQLite compresses nothing.
 */
export async function compressQuickly(db: Db, table: string, column: string): Promise<void> {
  if (dialectOfDb(db) === 'sqlite') return
  const known = "select 1 from pg_settings where name = 'default_toast_compression' and 'lz4' = any(enumvals)"
  const { rows } = (await db.raw(known)) as { rows: unknown[] }
  if (rows.length > 0) await db.raw('alter table ?? alter column ?? set compression lz4', [table, column])
}

export type DatabaseTrouble = 'transient_conflict' | 'database_unavailable' | 'query_timeout' | 'duplicate' | null

const byCode: Record<string, DatabaseTrouble> = {
  SQLITE_FULL: 'database_unavailable',
  SQLITE_CONSTRAINT_UNIQUE: 'duplicate',
  SQLITE_CONSTRAINT_PRIMARYKEY: 'duplicate',
  '40001': 'transient_conflict',
  '40P01': 'transient_conflict',
  '55P03': 'transient_conflict',
  '23505': 'duplicate',
  '57014': 'query_timeout',
  // A standby, which takes no writes: another one is promoted at this moment.
  '25006': 'database_unavailable',
  '25P03': 'database_unavailable',
  ECONNREFUSED: 'database_unavailable',
  ECONNRESET: 'database_unavailable',
  EHOSTUNREACH: 'database_unavailable',
  ENETUNREACH: 'database_unavailable',
  ETIMEDOUT: 'database_unavailable',
  ENOTFOUND: 'database_unavailable',
  EAI_AGAIN: 'database_unavailable',
  ENOENT: 'database_unavailable',
  EPIPE: 'database_unavailable',
}

/** Codes of SQLite say more after these words. PostgreSQL's classes: its connections, its resources, its ends, its system. */
const byBeginning: readonly [RegExp, DatabaseTrouble][] = [
  [/^SQLITE_(BUSY|LOCKED)/, 'transient_conflict'],
  [/^SQLITE_(IOERR|CANTOPEN|READONLY|CORRUPT|NOTADB)/, 'database_unavailable'],
  [/^(08|53|57P|58)[0-9A-Z]+$/, 'database_unavailable'],
]

export type Undone = 'conflict' | 'deadlock' | 'duplicate'

/**
 * Returns why the database undid a transaction for the sake of another one: no order of the two gives what both did, each waited for the
 * other, or the other one had inserted the same key. null: it did so for no such reason. A transaction on SQLite has the lock of the
 * writer from its beginning, so nobody is preferred to it.
 */
export function undoneFor(error: unknown): Undone | null {
  const code = (error as { code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? (undoneByCode[code] ?? null) : null
}

/** PostgreSQL refused a statement because an earlier one of its transaction had failed. */
export const isOfFailedTransaction = (error: unknown): boolean =>
  (error as { code?: unknown } | null | undefined)?.code === '25P02'

const undoneByCode: Record<string, Undone> = {
  '40001': 'conflict',
  '40P01': 'deadlock',
  '23505': 'duplicate',
}

/**
 * PostgreSQL cancelled a statement, or a write waited for its locks in vain: the transaction is undone. One that gets as far as
 * its commit is not cancelled any more.
 */
export const wasCancelled = (error: unknown): boolean => (error as { code?: unknown } | null)?.code === '57014'

/**
 * A transaction failed before the first statement of its work: while it waited for its locks or for a connection, or at its
 * beginning. So nothing of it was done, whatever `cause` is.
 */
export class NotBegunError extends Error {
  override readonly name = 'NotBegunError'

  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

/** The disk of the database has no room, or what its user may take of it. */
export function isFull(error: unknown): boolean {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown }
  return error instanceof NotBegunError ? isFull(cause) : code === 'SQLITE_FULL' || code === '53100'
}

/** The meaning of a database error to a caller; null for an error that is not about the database's state. */
export function databaseTroubleOf(error: unknown): DatabaseTrouble {
  if (error instanceof NotBegunError) return databaseTroubleOf(error.cause)
  if (!(error instanceof Error)) return null
  if (error.name === 'KnexTimeoutError') return /pool/i.test(error.message) ? 'database_unavailable' : 'query_timeout'
  const code = (error as { code?: unknown }).code
  const known = typeof code === 'string' ? troubleByCode(code) : null
  if (known !== null) return known
  if (certificateTrouble(error) !== null) return 'database_unavailable'
  if (/Connection terminated|connection is closed|timeout expired|Unable to acquire a connection/i.test(error.message))
    return 'database_unavailable'
  return null
}

function troubleByCode(code: string): DatabaseTrouble {
  if (Object.hasOwn(byCode, code)) return byCode[code] ?? null
  return byBeginning.find(([beginning]) => beginning.test(code))?.[1] ?? null
}
