import { dirname } from 'node:path'
import knex, { type Knex } from 'knex'
import type BetterSqlite3 from 'better-sqlite3'
import { realWorld } from '../../shared/lib/world.ts'
import { makeFolder } from '../process/make-folder.ts'
import { dialectOf, type Dialect } from './dialect.ts'
import { PostgresClient } from './postgres-client.ts'
import { pipelined } from './pipeline.ts'
import { keepAlive } from './silence.ts'
import { equip, SqliteClient } from './sqlite-client.ts'
import type { WriteState } from './transaction.ts'
import { LocalLocks } from './advisory-locks.ts'

export type { Askable, Db, Tx } from './handle.ts'

export interface Database {
  /** The root handle. On SQLite it has one connection: never use it inside a transaction. */
  readonly root: Knex
  readonly dialect: Dialect
  close(): Promise<void>
}

export interface DatabaseOptions {
  /** `postgres://...`, or the path of a SQLite file, or `:memory:`. */
  url: string
  /** PostgreSQL connections of this process. */
  poolSize?: number
  /** PostgreSQL ends a read that takes longer. */
  readMs?: number
  /** PostgreSQL ends a write that takes longer, with the time that it waits for others. */
  writeMs?: number
  /** A PostgreSQL that says nothing for so long while a statement is under way counts as gone. Default: 10 s above the limits. */
  silentMs?: number
  /**
   * The time after which a wait for a connection fails; a request is then answered 503 `database_unavailable`. Default: 5 s longer than
   * anything may take that holds one. On a machine without a free processor a shorter time is over before anything was done.
   */
  acquireMs?: number
  /** Bytes of a serialized database to open instead of a file (tests). */
  image?: Buffer
}

export const defaultReadMs = 10_000
export const defaultWriteMs = 20_000
const connectMs = 10_000

export function openDatabase(options: DatabaseOptions): Database {
  const dialect = dialectOf(options.url)
  const root = dialect === 'postgres' ? openPostgres(options) : openSqlite(options)
  return { root, dialect, close: () => root.destroy() }
}

/** knex prints what it thinks worth a warning; what matters of it reaches the callers as errors, and their log. */
const nothing = () => undefined
const quiet = { warn: nothing, error: nothing, deprecate: nothing, debug: nothing }

/** knex keeps the whole of its configuration with its client, where `inTransaction` finds what is ours. */
type Config = Knex.Config & { writes: WriteState; silentMs?: number }

const writesOf = ({ writeMs = defaultWriteMs }: DatabaseOptions): WriteState => ({
  world: realWorld,
  localLocks: new LocalLocks(realWorld),
  writeMs,
  fullAt: null,
  onFailed: new Set(),
  observers: new Set(),
  onPublished: new Set(),
  onStepFailed: new Set(),
})

function openSqlite(options: DatabaseOptions): Knex {
  const inMemory = options.url === ':memory:'
  if (!inMemory) makeFolder(dirname(options.url))
  const config: Config = {
    writes: writesOf(options),
    client: SqliteClient,
    // The statement of a failed query is logged (query-failure.ts): its values stay out of it.
    compileSqlOnError: false,
    log: quiet,
    connection: { filename: (options.image ?? options.url) as string },
    useNullAsDefault: true,
    pool: {
      min: 1,
      max: 1,
      acquireTimeoutMillis: acquireMsOf(options),
      afterCreate: (raw: BetterSqlite3.Database, done: (error: Error | null) => void) => {
        // Rows over one page's quarter spill on small pages; frames are large rows. Takes effect on a new file only.
        raw.pragma('page_size = 16384')
        raw.pragma('journal_mode = WAL')
        // WAL falls back to NORMAL on the second open of a file unless told again each time.
        raw.pragma('synchronous = FULL')
        raw.pragma('foreign_keys = ON')
        raw.pragma('journal_size_limit = 67108864')
        // Measuring a table (statistics.ts) reads so much of each of its indexes: enough to tell those of a workspace from narrower
        // ones, and a hundredth of a second or two where there are 200,000 runs.
        raw.pragma('analysis_limit = 10000')
        if (process.platform === 'darwin') {
          raw.pragma('fullfsync = 1')
          raw.pragma('checkpoint_fullfsync = 1')
        }
        equip(raw)
        // Statements that find the file busy wait without blocking the event loop (sqlite-client.ts); the lines above cannot.
        raw.pragma('busy_timeout = 0')
        done(null)
      },
    },
  }
  return knex(config)
}

const acquireMsOf = ({ readMs = defaultReadMs, writeMs = defaultWriteMs, acquireMs }: DatabaseOptions): number =>
  acquireMs ?? Math.max(readMs, writeMs) + 5_000

/** PostgreSQL has that much more time to say that it has ended a statement. */
const silentGraceMs = 10_000

export const silentMsOf = ({
  readMs = defaultReadMs,
  writeMs = defaultWriteMs,
  silentMs,
}: Omit<DatabaseOptions, 'url'>): number => silentMs ?? Math.max(readMs, writeMs) + silentGraceMs

function openPostgres(options: DatabaseOptions): Knex {
  const config: Config = {
    writes: writesOf(options),
    silentMs: silentMsOf(options),
    client: PostgresClient,
    compileSqlOnError: false,
    log: quiet,
    connection: {
      connectionString: options.url,
      application_name: 'svc-server',
      // Times are milliseconds and sequence numbers are counters: both fit a double exactly, so int8 is read as number.
      types: { getTypeParser: bigintAsNumber },
      statement_timeout: options.readMs ?? defaultReadMs,
      idle_in_transaction_session_timeout: 60_000,
      connectionTimeoutMillis: options.acquireMs ?? connectMs,
      ...pipelined,
      ...keepAlive,
    },
    pool: { min: 0, max: options.poolSize ?? 8, acquireTimeoutMillis: acquireMsOf(options) },
  }
  return knex(config)
}

const int8 = 20
const bytea = 17
const bool = 16
/** Replaces pg's parsers for the few types the schema has; the rest stays text. */
function bigintAsNumber(oid: number, format?: string): (value: never) => unknown {
  if (format === 'binary') return (value: Buffer) => value
  if (oid === int8 || oid === 23 || oid === 21) return (value: string) => Number(value)
  if (oid === bool) return (value: string) => value === 't'
  if (oid === bytea) return (value: string) => Buffer.from(value.slice(2), 'hex')
  return (value: string) => value
}
