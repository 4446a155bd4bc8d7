import { existsSync } from 'node:fs'
import BetterSqlite3 from 'better-sqlite3'
import type { Knex } from 'knex'
import Client from 'knex/lib/dialects/better-sqlite3/index.js'
import Transaction from 'knex/lib/dialects/sqlite3/execution/sqlite-transaction.js'
import type { CopiedInto, CopiedRow } from './copy.ts'
import { checkDeadline, setDeadline } from './deadline.ts'
import type { Askable } from './handle.ts'
import { textFinder } from './like.ts'
import { failedQuery, noteFailure, queryStateOf } from './query-failure.ts'
import type { StatementClient, StatementText, Value } from './statement.ts'

/**
 * knex's client, quicker in two ways, and one that lets others have their turn.
 *
 * Other processes, which are those of the operator's commands, write the file as well. A transaction begins with the lock of
 * the writer: SQLite refuses at once to give it to one that has read already. Whoever asks for the lock waits here, and
 * not in SQLite, which would block the event loop for as long.
 *
 * A SQLite file is read outside of transactions by a second connection, which only reads: knex's own one is held by each
 * write for as long as it takes. What the second one reads is what is committed at that moment.
 */
export class SqliteClient extends Client implements StatementClient {
  /** Clients of transactions are made without the constructor and have none. */
  private reader: Reader | null = null

  readRows({ sqlite }: StatementText, values: readonly Value[]): Promise<unknown[]> | unknown[] {
    const reader = this.transacting === true ? null : this.readerOfFile()
    if (reader !== null) return this.readBy(reader, { sql: sqlite, bindings: bindingsOf(values) })
    return this.ask(sqlite, values) as Promise<unknown[]>
  }

  async change({ sqlite }: StatementText, values: readonly Value[]): Promise<number> {
    return ((await this.ask(sqlite, values)) as BetterSqlite3.RunResult).changes
  }

  async sendRows({ sqlite }: StatementText, values: readonly Value[]): Promise<{ answer: Promise<unknown[]> }> {
    return { answer: Promise.resolve((await this.ask(sqlite, values)) as unknown[]) }
  }

  /** Inserts the rows in turn by one prepared statement: better than many rows in one, which is another text for each count. */
  async insertRows({ table, columns }: CopiedInto, rows: readonly CopiedRow[]): Promise<void> {
    const names = Object.keys(columns)
    const marks = names.map(() => '?')
    const sql = `insert into "${table}" (${names.join(', ')}) values (${marks.join(', ')})`
    for (const row of rows) await this.ask(sql, row)
  }

  /** Reads follow one another by themselves. */
  onOneConnection<Result>(work: (db: Askable) => Promise<Result>): Promise<Result> {
    return work({ client: this })
  }

  private async ask(sql: string, values: readonly Value[]): Promise<unknown> {
    const connection = await this.acquireConnection()
    try {
      const { response } = await this.query(connection, { sql, bindings: bindingsOf(values) })
      // The event is that of knex's own queries.
      this.emit('query-response', response, { sql })
      return response
    } finally {
      void this.releaseConnection(connection)
    }
  }

  private readBy(reader: Reader, asked: Required<Bound>): Promise<unknown[]> | unknown[] {
    const fail = (error: unknown) => failedQuery(this, error, asked)
    try {
      const rows = reader.all(limitWritten(asked))
      return Array.isArray(rows) ? rows : rows.catch(fail)
    } catch (error) {
      return fail(error)
    }
  }

  override acquireConnection(): Promise<BetterSqlite3.Database> {
    return super.acquireConnection().catch((error: unknown) => {
      noteFailure(this, error)
      throw error
    })
  }

  /** The end of a transaction that failed may have left it open: it is undone before anybody else has the connection. */
  override releaseConnection(connection: BetterSqlite3.Database): Promise<void> {
    if (connection.inTransaction) connection.exec('rollback')
    return super.releaseConnection(connection)
  }

  private readerOfFile(): Reader | null {
    if (this.reader !== null) return this.reader
    const { filename } = this.connectionSettings as { filename: string | Buffer }
    if (typeof filename !== 'string' || filename === ':memory:' || !existsSync(filename)) return null
    return (this.reader = new Reader(filename))
  }

  /**
   * Opens the second connection again with the next read: a connection learns what another one measured of the tables
   * (statistics.ts) when it is opened.
   */
  async reopenReader(): Promise<void> {
    const { reader } = this
    this.reader = null
    // Reads that wait for a turn of the loop come before this one.
    await new Promise((resolve) => setImmediate(resolve))
    reader?.close()
  }

  /** The reader is closed first: the connection that closes last folds the log into the file. */
  override destroy(...given: Parameters<Client['destroy']>): Promise<void> {
    this.reader?.close()
    this.reader = null
    return super.destroy(...given)
  }

  override transaction(container: unknown, config?: object, outer?: unknown): Knex.Transaction {
    // The cast is that of knex's own transactions, whose type does not say that they are promises of the transaction's result.
    return new WriterTransaction(this, container, config, outer) as unknown as Knex.Transaction
  }

  override async query(...[connection, query]: Parameters<Client['query']>): ReturnType<Client['query']> {
    if (this.transacting === true) checkDeadline(connection, query, queryStateOf(this).world.monotonic())
    return super.query(connection, query).catch((error: unknown) => failedQuery(this, error, query))
  }

  protected override _query(...[connection, query]: Parameters<Client['_query']>): Promise<unknown> {
    const send = () => {
      // The name is knex's.
      // oxlint-disable-next-line no-underscore-dangle
      const ask = () => super._query(connection, Object.assign(query, limitWritten(query)))
      return LoopTurns.of(connection).next()?.then(ask) ?? ask()
    }
    return send().catch((error: unknown) => this.afterOthers(send, error, connection))
  }

  /** Asks again while another process has the file, as long as a write may take. In a transaction nothing has to be waited for. */
  private async afterOthers(
    send: () => Promise<unknown>,
    error: unknown,
    { inTransaction }: BetterSqlite3.Database,
  ): Promise<unknown> {
    const { world, writeMs } = queryStateOf(this)
    const until = world.monotonic() + writeMs
    for (let last = error; ;) {
      if (inTransaction || !isBusy(last) || world.monotonic() >= until) throw last
      // A server that writes without a pause leaves the file alone for a fraction of a millisecond between two transactions.
      await world.sleep(1 + 3 * world.random())
      try {
        return await send()
      } catch (again) {
        last = again
      }
    }
  }
}

const isBusy = (error: unknown): boolean => String((error as { code?: unknown } | null)?.code).startsWith('SQLITE_BUSY')

class WriterTransaction extends Transaction {
  private readonly until: number | undefined

  constructor(...[client, container, config, outer]: ConstructorParameters<typeof Transaction>) {
    super(client, container, config, outer)
    this.until = config?.until
  }

  /** Asks the client itself: by `query` of its own class knex does the work of a transaction that did not begin. */
  override begin(connection: BetterSqlite3.Database): Promise<unknown> {
    setDeadline(connection, this.until, queryStateOf(this.client).world.monotonic())
    return this.trxClient.query(connection, this.readOnly === true ? 'begin' : 'begin immediate')
  }
}

interface Bound {
  sql: string
  bindings?: readonly unknown[]
}

/**
 * Writes the number of a `limit ?` into the statement. SQLite plans by the number and so compiles a statement anew each
 * time it is bound, which costs several times what reading a row does; the text with the number is prepared once.
 */
function limitWritten({ sql, bindings = [] }: Bound): Required<Bound> {
  const limit = bindings.at(-1)
  return sql.endsWith(' limit ?') && Number.isSafeInteger(limit)
    ? { sql: sql.slice(0, -1) + String(limit), bindings: bindings.slice(0, -1) }
    : { sql, bindings }
}

/** Gives a connection to a SQLite database our function and its cache of statements. */
export function equip(connection: BetterSqlite3.Database): void {
  connection.function('holds_text', { deterministic: true }, textFinder())
  cacheStatements(connection)
}

class Reader {
  private readonly connection: BetterSqlite3.Database

  constructor(file: string) {
    this.connection = new BetterSqlite3(file, { readonly: true, fileMustExist: true })
    this.connection.pragma('busy_timeout = 5000')
    equip(this.connection)
  }

  all({ sql, bindings }: Required<Bound>): Promise<unknown[]> | unknown[] {
    const read = () => this.connection.prepare(sql).all(...bindings)
    return LoopTurns.of(this.connection).next()?.then(read) ?? read()
  }

  close(): void {
    this.connection.close()
  }
}

function bindingsOf(values: readonly Value[]): readonly unknown[] {
  return values.some((value) => Array.isArray(value))
    ? values.map((value) => (Array.isArray(value) ? JSON.stringify(value) : value))
    : values
}

/** Statements may hold the event loop for so long in one go. */
const mostMs = 20

const key = Symbol('loop turns')

/**
 * SQLite answers within the call, so what asks one statement after another (a batch, a sweep, wakes that wait) gives the event loop no turn
 * by itself: nobody else would be served until it is done. The turns are asked before each statement.
 */
class LoopTurns {
  /** The time at which the first statement of this turn of the loop was asked. */
  private startedAt: number | null = null

  /** The turns of a connection; all statements on it count together. */
  static of(connection: object): LoopTurns {
    const known: { [key]?: LoopTurns } = connection
    return (known[key] ??= new LoopTurns())
  }

  /** Returns null to go on, else a promise to be awaited first: work that waits meanwhile is served before it resolves. */
  next(): Promise<void> | null {
    if (this.startedAt === null) {
      this.startedAt = performance.now()
      setImmediate(() => (this.startedAt = null))
      return null
    }
    if (performance.now() - this.startedAt < mostMs) return null
    return new Promise((resolve) => setImmediate(resolve))
  }
}

/** A statement is there once for each number of rows that it was asked for. */
const kept = 2_000

/**
 * Keeps prepared statements by their text: knex prepares anew for each query, which costs more than most of our queries
 * do. A statement that is being iterated is not given out twice, and a change of the schema empties the cache.
 */
function cacheStatements(raw: BetterSqlite3.Database): void {
  const prepare = raw.prepare.bind(raw)
  const cache = new Map<string, BetterSqlite3.Statement>()
  const cached = (source: string): BetterSqlite3.Statement => {
    const known = cache.get(source)
    if (known && !known.busy) return known
    const statement = prepare(plannedOnce(source))
    // The statement is written for the sizes that tables have now (statistics.ts), and changes nothing.
    if (/^\s*pragma optimize\b/i.test(source)) return statement
    if (/^\s*(?:create|alter|drop|vacuum|pragma)\b/i.test(source)) {
      cache.clear()
      return statement
    }
    if (cache.size >= kept) cache.delete(cache.keys().next().value ?? '')
    cache.set(source, statement)
    return statement
  }
  raw.prepare = cached as typeof raw.prepare
}

/**
 * Writes `+?` for `?`. A bare one may decide how SQLite plans, so it compiles a statement that joins tables anew each time
 * values are bound, which costs twenty times what reading a row does; `+?` is the same value, of which the plan knows
 * nothing. Where the plan gains by it, with `like` and `limit`, it stays.
 */
export function plannedOnce(source: string): string {
  return source.replaceAll(valueOrQuoted, (found, _quoted, at: number) =>
    found === '?' && !/\b(?:like|limit|offset) $/i.test(source.slice(Math.max(0, at - 8), at)) ? '+?' : found,
  )
}

const valueOrQuoted = /('[^']*'|"[^"]*"|`[^`]*`)|\?/g
