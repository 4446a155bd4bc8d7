import type { RunId } from '../../shared/lib/ids.ts'
import { renameSync, rmSync } from 'node:fs'
import Database from 'better-sqlite3'
import { parseJsonText } from '../../shared/lib/lines.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../log/log.ts'
import { makeReserve, type Reserve } from '../spool/reserve.ts'
import { isDiskFull, isSystemTrouble } from '../process/system-trouble.ts'
import { runState, type RunState } from './machine.ts'
import { keepPrivate, sqliteFiles } from '../setup/private-file.ts'

export interface JournalOptions {
  path: string
  world: Pick<World, 'after' | 'now'>
  log: Log
  /** States that could not be written at first are on the disk now. */
  onCaughtUp(runIds: readonly RunId[]): void
}

/** Room for more changes of more runs than one device has, since the log in front of the file is used again and again. */
const reserveBytes = 2 * 1024 * 1024
const retryMs = 1_000
/** A backup of a server that is older is no use to anybody. */
const launchesKeptMs = 90 * 24 * 3_600_000

/**
 * Keeps what the daemon has promised: the state of each run, on the disk before anything is done about it. No secret is in
 * it: tokens and secret values come with the start and stay in memory.
 *
 * A disk that takes nothing (full, failing) must not end the daemon, and runs must still end. So room is kept for what is
 * written of runs that were taken, and beyond that the newest state of each run waits here until it can be written:
 *
 *     in step -- a write fails --> behind (the newest states are held) -- a try each second succeeds --> in step
 *
 * While a run is behind, what must not happen twice is not begun (`isBehind`): a daemon that starts after a crash would
 * not know of it. Everything else goes on, since each effect may run again. New runs are not taken; one that could not be
 * written is refused, and none is taken before a write was tried and succeeded.
 *
 * Which runs were launched is remembered beyond their end: a server that is restored from a backup offers those again that waited
 * when it was made.
 */
export class Journal {
  private readonly options: JournalOptions
  private readonly db: Database.Database
  private readonly reserve: Reserve
  private readonly put: Database.Statement<[string, number, string]>
  private readonly drop: Database.Statement<[string]>
  private readonly noteLaunch: Database.Statement<[string, number, number]>
  private readonly findLaunch: Database.Statement<[string], number>
  private readonly behind = new Map<RunId, RunState | null>()
  /** A run could not be written, and nothing could since. */
  private isRefusing = false
  private why: 'disk_full' | 'spool_unavailable' | null = null
  private cancelRetry: (() => void) | null = null

  constructor(options: JournalOptions) {
    this.options = options
    this.reserve = makeReserve(`${options.path}.reserve`, reserveBytes)
    this.db = this.withReserve(() => openOrSetAside(options.path))
    this.put = this.db.prepare(
      'insert into runs (run_id, fence, state) values (?, ?, ?) on conflict (run_id) do update set fence = excluded.fence, state = excluded.state',
    )
    this.drop = this.db.prepare('delete from runs where run_id = ?')
    this.noteLaunch = this.db.prepare(
      'insert into launches (run_id, fence, at) values (?, ?, ?) on conflict (run_id) do update set fence = excluded.fence, at = excluded.at',
    )
    this.findLaunch = this.db.prepare<[string], number>('select fence from launches where run_id = ?').pluck()
    this.reserve.ensure()
  }

  /**
   * The run was given to its run host before, under whatever fence: no run that a server has begun waits again. One that is restored may
   * offer it under a higher fence than that of its launch, since it takes back the offer which was open when the backup was made.
   */
  wasLaunched(runId: RunId): boolean {
    return this.findLaunch.get(runId) !== undefined
  }

  /** Takes a run that is not held yet. False when it cannot be written: then it is not taken. */
  take(state: RunState): boolean {
    if (this.trouble() !== null) return false
    try {
      this.writeNow(state.runId, state)
      return true
    } catch (error) {
      this.failed(error)
      this.isRefusing = true
      this.retryLater()
      return false
    }
  }

  /** Writes a step of a run that was taken: it is on the disk when this returns true, else as soon as the disk takes it. */
  write(runId: RunId, state: RunState | null): boolean {
    if (this.behind.size === 0) {
      try {
        this.withReserve(() => this.writeNow(runId, state))
        return true
      } catch (error) {
        this.failed(error)
      }
    }
    this.behind.set(runId, state)
    this.retryLater()
    return false
  }

  /** The disk does not have the newest state of the run. */
  isBehind(runId: RunId): boolean {
    return this.behind.has(runId)
  }

  /** Returns why no run can be taken; null: runs can. */
  trouble(): 'disk_full' | 'spool_unavailable' | null {
    if (this.behind.size > 0 || this.isRefusing) return this.why ?? 'spool_unavailable'
    return this.reserve.ensure() ? null : 'disk_full'
  }

  /** Loads the states of all runs. Rows that cannot be read are dropped and named: the control plane ends their runs when the device says hello. */
  load(): { states: RunState[]; unreadable: RunId[] } {
    const states: RunState[] = []
    const unreadable: RunId[] = []
    for (const row of this.db.prepare<[], { run_id: RunId; state: string }>('select run_id, state from runs').all()) {
      const parsed = runState.safeParse(parseJsonText(row.state))
      if (parsed.success) states.push(parsed.data)
      else unreadable.push(row.run_id)
    }
    for (const runId of unreadable) this.write(runId, null)
    this.forgetOldLaunches()
    return { states, unreadable }
  }

  close(): void {
    this.cancelRetry?.()
    if (this.behind.size > 0) this.catchUp()
    this.db.close()
  }

  /** Writes or removes the row of a run in one transaction, which is on the disk when it returns. */
  private writeNow(runId: RunId, state: RunState | null): void {
    if (state === null) return void this.drop.run(runId)
    const put = () => this.put.run(runId, state.fence, JSON.stringify(state))
    if (state.phase !== 'starting') return void put()
    this.db.transaction(() => {
      put()
      this.noteLaunch.run(runId, state.fence, this.options.world.now())
    })()
  }

  /** What cannot be removed now is removed at another start. */
  private forgetOldLaunches(): void {
    try {
      this.db.prepare('delete from launches where at < ?').run(this.options.world.now() - launchesKeptMs)
    } catch (error) {
      if (!isSystemTrouble(error)) throw error
    }
  }

  /** Writes a row and removes it in the same transaction, to learn whether the disk takes it. */
  private tryWrite(): void {
    this.put.run('', 0, '')
    this.drop.run('')
  }

  /** Frees the reserve when there is no room without it. */
  private withReserve<Result>(work: () => Result): Result {
    try {
      return work()
    } catch (error) {
      if (!isDiskFull(error) || !this.reserve.release()) throw error
      return work()
    }
  }

  private failed(error: unknown): void {
    if (!isSystemTrouble(error)) throw error
    this.why = isDiskFull(error) ? 'disk_full' : 'spool_unavailable'
    if (this.behind.size === 0 && !this.isRefusing)
      this.options.log.error({ err: error }, 'the journal cannot be written')
  }

  private retryLater(): void {
    this.cancelRetry ??= this.options.world.after(retryMs, () => {
      this.cancelRetry = null
      this.catchUp()
    })
  }

  private catchUp(): void {
    const runIds = [...this.behind.keys()]
    try {
      this.withReserve(() =>
        this.db.transaction(() => {
          this.tryWrite()
          for (const [runId, state] of this.behind) this.writeNow(runId, state)
        })(),
      )
    } catch (error) {
      this.failed(error)
      return this.retryLater()
    }
    this.behind.clear()
    this.isRefusing = false
    this.why = null
    this.options.log.info({ runs: runIds }, 'the journal is written again')
    this.options.onCaughtUp(runIds)
  }
}

/**
 * Opens the journal. A file that is no database any more is set aside (`<path>.corrupt`, the last one): with it the daemon could never start
 * again. What it held is as lost as a row that cannot be read, and ends in the same way.
 */
function openOrSetAside(path: string): Database.Database {
  try {
    return open(path)
  } catch (error) {
    if (!/^SQLITE_(CORRUPT|NOTADB)/.test(String((error as { code?: unknown }).code))) throw error
    renameSync(path, `${path}.corrupt`)
    for (const suffix of ['-wal', '-shm']) rmSync(path + suffix, { force: true })
    return open(path)
  }
}

function open(path: string): Database.Database {
  keepPrivate(path, sqliteFiles(path))
  const db = new Database(path)
  try {
    db.pragma('journal_mode = WAL')
    db.pragma('synchronous = FULL')
    db.pragma('busy_timeout = 5000')
    // The log is used anew from this length on, so that it takes no more room than what is kept for it.
    db.pragma('wal_autocheckpoint = 64')
    if (process.platform === 'darwin') db.pragma('fullfsync = 1')
    db.exec('create table if not exists runs (run_id text primary key, fence integer not null, state text not null)')
    db.exec(
      'create table if not exists launches (run_id text primary key, fence integer not null, at integer not null)',
    )
    const verdict = String(db.pragma('quick_check(1)', { simple: true }))
    if (verdict !== 'ok') throw Object.assign(new Error(verdict), { code: 'SQLITE_CORRUPT' })
    return db
  } catch (error) {
    db.close()
    throw error
  }
}
