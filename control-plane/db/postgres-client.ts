import type { EventEmitter } from 'node:events'
import type { Knex } from 'knex'
import Client from 'knex/lib/dialects/postgres/index.js'
import Transaction from 'knex/lib/dialects/postgres/execution/pg-transaction.js'
import { endWhenSilent } from './silence.ts'
import type { Askable } from './handle.ts'
import { aloneOn } from './pipeline.ts'
import { releaseAdvisoryLocks } from './advisory-locks.ts'
import { failedQuery, noteFailure, queryStateOf } from './query-failure.ts'
import { checkDeadline, setDeadline } from './deadline.ts'
import { copyRows, type CopiedInto, type CopiedRow } from './copy.ts'
import type { StatementClient, StatementText, Value } from './statement.ts'

type Connection = Awaited<ReturnType<Client['acquireConnection']>>

/** knex's client; statements are prepared once for each connection, and transactions begin as `inTransaction` says. */
export class PostgresClient extends Client implements StatementClient {
  /** Statements without a limit are under way. */
  private patient = 0

  override async acquireRawConnection() {
    const connection = await super.acquireRawConnection()
    const { silentMs } = this.config as unknown as { silentMs: number }
    endWhenSilent(connection, silentMs, () => this.patient > 0)
    dropWhenEnded(connection)
    return connection
  }

  override acquireConnection(): Promise<Connection> {
    return super.acquireConnection().catch((error: unknown) => {
      noteFailure(this, error)
      throw error
    })
  }

  /**
   * The end of a transaction can fail and leave it open or failed: near its deadline a rollback has the last millisecond that its statements
   * were given. Such a connection is closed and not given out again, which ends the transaction.
   */
  override releaseConnection(connection: Connection): Promise<void> {
    if (connection.getTransactionStatus() !== 'I')
      Object.assign(connection, { __knex__disposed: new Error('its transaction did not end') })
    return super.releaseConnection(connection)
  }

  /** Statements of the work may take as long as they take; for the time before a server serves. */
  async patiently<Result>(work: () => Promise<Result>): Promise<Result> {
    this.patient++
    try {
      return await work()
    } finally {
      this.patient--
    }
  }

  override transaction(container: unknown, config?: BeginConfig, outer?: unknown): Knex.Transaction {
    // The cast is that of knex's own transactions, whose type does not say that they are promises of the transaction's result.
    return new WriteTransaction(this, container, config, outer) as unknown as Knex.Transaction
  }

  /**
   * Keeps one connection for as long as `use` takes, whose transactions wait for locks (`acquireAdvisoryLocks`): these are released with
   * the commit of one, or when it fails.
   */
  async withLockHolder<Result>(use: (connection: Connection) => Promise<Result>): Promise<Result> {
    const connection = await this.acquireConnection()
    try {
      const result = await use(connection)
      this.giveBack(connection)
      return result
    } catch (error) {
      // The caller waits for the failure, and need not wait for the release.
      void this.releaseLocks(connection)
      throw error
    }
  }

  private async releaseLocks(connection: Connection): Promise<void> {
    try {
      // A transaction is open only when the locks were waited for in vain.
      await connection.query(`rollback; ${releaseAdvisoryLocks}`)
    } catch (error) {
      // The pool must not give out a connection that may still hold a lock; without it the lock is released.
      Object.assign(connection, { __knex__disposed: error })
      await connection.end().catch(() => undefined)
    } finally {
      this.giveBack(connection)
    }
  }

  private giveBack(connection: Connection): void {
    // knex leaves the mark of a transaction on a connection that it was given.
    Reflect.deleteProperty(connection, '__knexTxId')
    void this.releaseConnection(connection)
  }

  override async query(...[connection, query]: Parameters<Client['query']>): ReturnType<Client['query']> {
    if (this.transacting === true) {
      const limitMs = checkDeadline(connection, query, queryStateOf(this).world.monotonic())
      // The limit is sent before the statement. When this one fails, so does the statement.
      if (limitMs !== null) super.query(connection, `set local statement_timeout = ${limitMs}`).catch(() => undefined)
    }
    return super.query(connection, query).catch((error: unknown) => failedQuery(this, error, query))
  }

  async onOneConnection<Result>(work: (db: Askable) => Promise<Result>): Promise<Result> {
    const connection = await this.acquireConnection()
    const client: unknown = Object.create(this, {
      acquireConnection: { value: () => Promise.resolve(connection) },
      releaseConnection: { value: () => Promise.resolve() },
    })
    try {
      return await work({ client })
    } finally {
      void this.releaseConnection(connection)
    }
  }

  async readRows(text: StatementText, values: readonly Value[]): Promise<unknown[]> {
    return (await this.ask(text, values)).rows
  }

  async change(text: StatementText, values: readonly Value[]): Promise<number> {
    return (await this.ask(text, values)).rowCount ?? 0
  }

  async sendRows(text: StatementText, values: readonly Value[]): Promise<{ answer: Promise<unknown[]> }> {
    const { response } = await this.send(text, values)
    return { answer: response.then(({ rows }) => rows) }
  }

  async insertRows(into: CopiedInto, rows: readonly CopiedRow[]): Promise<void> {
    const connection = await this.acquireConnection()
    try {
      await aloneOn(connection, () => copyRows(connection, into, rows))
    } finally {
      void this.releaseConnection(connection)
    }
  }

  private async ask(text: StatementText, bindings: readonly Value[]) {
    return (await this.send(text, bindings)).response
  }

  /** Resolves once the statement is sent. */
  private async send({ postgres, name }: StatementText, bindings: readonly Value[]) {
    const connection = await this.acquireConnection()
    const asked = this.query(connection, { sql: postgres, bindings, options: name === null ? {} : { name } })
    const answered = async () => {
      try {
        const { response } = await asked
        // The event is that of knex's own queries.
        this.emit('query-response', response, { sql: postgres })
        return response
      } finally {
        void this.releaseConnection(connection)
      }
    }
    return { response: answered() }
  }
}

/**
 * knex gives out a connection again until it learns that the connection is closed. PostgreSQL says so earlier, by a fatal error
 * of the statement under way; without that the next statement would be sent on a closed connection, and fail.
 */
function dropWhenEnded(connection: Connection): void {
  const { connection: wire } = connection as unknown as { connection: EventEmitter }
  wire.on('errorMessage', (error: { severity?: string }) => {
    if (error.severity === 'FATAL' || error.severity === 'PANIC') Object.assign(connection, { __knex__disposed: error })
  })
}

/** The beginning of a transaction; knex hands it on. */
export interface BeginConfig {
  begin?: string
  /** The transaction's locks are released with its commit. */
  releasesLocks?: boolean
  /** The time (monotonic) by which it must be over. */
  until?: number
  /** Asks what may be asked in the round trip of the beginning: when that fails, it is asked outside of a transaction. */
  ahead?: (db: Askable) => void
}

/** Begins by the text that it was given, in the one round trip that a plain beginning takes. */
class WriteTransaction extends Transaction {
  private readonly beginText: string | undefined
  private readonly releasesLocks: boolean
  private readonly until: number | undefined
  private readonly ahead: ((db: Askable) => void) | undefined

  constructor(client: PostgresClient, container: unknown, config?: BeginConfig, outer?: unknown) {
    super(client, container, config, outer)
    this.beginText = config?.begin
    this.releasesLocks = config?.releasesLocks === true
    this.until = config?.until
    this.ahead = config?.ahead
  }

  override begin(connection: Connection): Promise<unknown> {
    setDeadline(connection, this.until, queryStateOf(this.client).world.monotonic())
    if (this.beginText === undefined) return super.begin(connection)
    const begun = this.query(connection, this.beginText)
    this.ahead?.({ client: this.trxClient })
    return begun
  }

  override commit(connection: Connection, value: unknown): Promise<unknown> {
    if (!this.releasesLocks) return super.commit(connection, value)
    return this.query(connection, `COMMIT; ${releaseAdvisoryLocks}`, 1, value)
  }
}
