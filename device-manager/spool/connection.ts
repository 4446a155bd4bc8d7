import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { keepPrivate, sqliteFiles } from '../setup/private-file.ts'
import { SpoolError } from './errors.ts'

export type Connection = Database.Database

export const pageBytes = 16_384
const applicationId = 0x73766373
const schemaVersion = 2

/**
 * Runs that lost rows with a damaged file. Up to `kept_seq` the file holds what was written. What was written after it, up to
 * `known_seq`, is gone, and only the control plane knows how much of it was sent before. So rows that are written from then
 * on (the ending) have numbers for the time being:
 *
 *     noted    -- the control plane says what it has --> settled: a `gap` event with what is lost, after it and before the
 *                                                        new rows, and all of them numbered above what it has
 *
 * Until then rows after `kept_seq` are not sent: their numbers may belong to other rows there. `is_unknown`: nobody knows how many
 * rows there were, so there may have been more. A table of its own, which releases before it ignore.
 */
const breaksTable = `
  create table if not exists breaks (
    run_no integer primary key,
    kept_seq integer not null,
    known_seq integer not null,
    lost_bytes integer not null,
    is_settled integer not null default 0,
    is_unknown integer not null default 0,
    reason text not null default 'spool_damaged'
  ) strict;
`

/** Columns that came later, each the last of its table. Releases before them ignore them. */
const laterColumns = [
  { table: 'runs', name: 'acked_bytes', as: 'integer not null default 0' },
  { table: 'breaks', name: 'is_unknown', as: 'integer not null default 0' },
  { table: 'breaks', name: 'reason', as: "text not null default 'spool_damaged'" },
] as const

/**
 * One row per run and fence, and per event. An event's key is the run's small number and its seq in one integer: rowid
 * tables with 16 KiB pages keep a whole event in its leaf (notes on performance: five times faster than a text key).
 */
const schema = `
  create table runs (
    run_no integer primary key,
    run_id text not null,
    fence integer not null,
    last_seq integer not null default 0,
    acked_seq integer not null default 0,
    pending_bytes integer not null default 0,
    gap_bytes integer not null default 0,
    tool_calls integer not null default 0,
    usage text,
    session_id text,
    approvals text,
    acked_bytes integer not null default 0,
    unique (run_id, fence)
  ) strict;
  create table events (id integer primary key, crc integer not null, line blob not null) strict;
  create table endings (run_no integer primary key, report text not null, change_set text) strict;
`

export interface ConnectionOptions {
  busyTimeoutMs: number
  maxPageCount: number
  /** A file that is not there is not made. */
  mustExist?: boolean
}

/** Opens the file, makes it when it is new, and sets what SQLite forgets between connections. */
export function openConnection(path: string, options: ConnectionOptions): Connection {
  if (!options.mustExist) mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  // SQLite gives the -wal and -shm files the mode of the main file.
  if (!options.mustExist) keepPrivate(path, sqliteFiles(path))
  const db = new Database(path, { timeout: options.busyTimeoutMs, fileMustExist: true })
  try {
    // Of a new file only: on an old one `auto_vacuum` would write, and so wait for the others' locks, at every open.
    if (Number(db.pragma('page_count', { simple: true })) === 0) {
      db.pragma(`page_size = ${pageBytes}`)
      db.pragma('auto_vacuum = incremental')
    }
    switchToWal(db, options.busyTimeoutMs)
    // A file that is in WAL mode already would open with NORMAL, which a power cut can roll back.
    db.pragma('synchronous = full')
    if (process.platform === 'darwin') {
      db.pragma('fullfsync = 1')
      db.pragma('checkpoint_fullfsync = 1')
    }
    db.pragma('wal_autocheckpoint = 256')
    db.pragma(`journal_size_limit = ${256 * pageBytes}`)
    migrate(db)
    // Counted per connection, not kept in the file.
    db.pragma(`max_page_count = ${options.maxPageCount}`)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Two processes that make the file at once: the switch does not wait for a lock by itself. */
function switchToWal(db: Connection, timeoutMs: number): void {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  for (let left = Math.max(timeoutMs, 1_000); ; left -= 20) {
    try {
      db.pragma('journal_mode = wal')
      return
    } catch (error) {
      if (left <= 0 || (error as { code?: string }).code !== 'SQLITE_BUSY') throw error
      Atomics.wait(pause, 0, 0, 20)
    }
  }
}

function migrate(db: Connection): void {
  upgrade(db)
  const hasBreaks = db.prepare("select 1 from sqlite_master where name = 'breaks'").get() !== undefined
  if (!hasBreaks) db.exec(breaksTable)
  const isMissing = ({ table, name }: (typeof laterColumns)[number]) =>
    db.prepare('select 1 from pragma_table_info(?) where name = ?').get(table, name) === undefined
  if (!laterColumns.some(isMissing)) return
  db.transaction(() => {
    for (const column of laterColumns)
      if (isMissing(column)) db.exec(`alter table ${column.table} add column ${column.name} ${column.as}`)
  }).immediate()
}

function upgrade(db: Connection): void {
  const version = () => Number(db.pragma('user_version', { simple: true }))
  if (version() === schemaVersion) return
  db.transaction(() => {
    const found = version()
    if (found === schemaVersion) return
    if (found > schemaVersion) throw new SpoolError(`the spool is of a newer release (version ${found})`)
    db.exec(found === 1 ? 'alter table runs add column approvals text' : schema)
    db.pragma(`application_id = ${applicationId}`)
    db.pragma(`user_version = ${schemaVersion}`)
  }).immediate()
}
