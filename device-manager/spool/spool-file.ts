import { z } from 'zod'
import { askedCall } from '../../shared/runs/asked-call.ts'
import { usageData } from '../../shared/runs/events.ts'
import type { World } from '../../shared/lib/world.ts'
import type { SinceBoot } from '../process/boot-clock.ts'
import { pageBytes, type Connection } from './connection.ts'
import { agoMs, endingOf, withMark, type EndingRow } from './end-mark.ts'
import { FileIdentity } from './file-identity.ts'
import {
  SpoolDamagedError,
  SpoolError,
  SpoolFullError,
  SpoolOrderError,
  SpoolReplacedError,
  toSpoolError,
} from './errors.ts'
import { freeDiskBytes, makeReserve, type Reserve } from './reserve.ts'
import {
  maxSeq,
  rowCrc,
  type RunEnding,
  type RunKey,
  type RunStats,
  type RunSummary,
  type Salvage,
  type SpoolRow,
} from './rows.ts'
import { Breaks, type LostRows } from './breaks.ts'
import { prepareStatements, type RunRow, type SpoolStatements } from './statements.ts'
import { WriteLock } from './write-lock.ts'

export interface EndFacts {
  stats?: RunStats
  lost?: LostRows | null
}

export interface SpooledStats extends RunStats {
  lastSeq: number
  ackedSeq: number
  pendingBytes: number
  /** Rows of the run were lost with a damaged file. */
  hasLostRows: boolean
  /** The last row whose number is certain; null: all are. */
  certainSeq: number | null
}

/** Free pages above this are given back to the file system. */
const sparePages = 1024

export interface SpoolParts {
  path: string
  db: Connection
  salvage: Salvage | null
  maxPageCount: number
  busyTimeoutMs: number
  reservedPages: number
  reserveBytes: number
  world: Pick<World, 'now'>
  sinceBoot: SinceBoot
}

/**
 * The events of all runs of this device that the control plane has not acknowledged. Several processes have it open at
 * once: each run host appends rows of its own run, the daemon reads, deletes and removes. All calls are synchronous and
 * each is one transaction; what returned is on the disk.
 */
export class Spool {
  /** Set when the file was damaged and this one holds what could be kept. */
  readonly salvage: Salvage | null
  readonly path: string
  readonly #db: Connection
  readonly #sql: SpoolStatements
  readonly #breaks: Breaks
  readonly #reserve: Reserve
  readonly #limit: { pages: number; pagesOfEndings: number }
  readonly #files: FileIdentity
  readonly #world: Pick<World, 'now'>
  readonly #sinceBoot: SinceBoot
  readonly #lock: WriteLock

  constructor(parts: SpoolParts) {
    this.path = parts.path
    this.salvage = parts.salvage
    this.#db = parts.db
    this.#sql = prepareStatements(parts.db)
    this.#breaks = new Breaks(parts.db)
    this.#reserve = makeReserve(`${parts.path}.reserve`, parts.reserveBytes)
    this.#limit = { pages: parts.maxPageCount, pagesOfEndings: parts.maxPageCount + parts.reservedPages }
    this.#files = new FileIdentity(parts.path)
    this.#world = parts.world
    this.#sinceBoot = parts.sinceBoot
    this.#lock = new WriteLock(parts.db, parts.busyTimeoutMs)
    this.#reserve.ensure()
  }

  /**
   * Adds rows that follow the run's last one. Throws SpoolFullError without having written anything when they do not
   * fit. Answers how many bytes of this run wait for their acknowledgement.
   */
  append(key: RunKey, rows: readonly SpoolRow[], stats?: RunStats): { pendingBytes: number } {
    return this.#guard(() => {
      if (!this.#reserve.ensure()) throw new SpoolFullError('the disk has no room for the spool’s reserve')
      return this.#lock.write(() => this.#add(key, rows, stats))
    })
  }

  /**
   * The run's last rows and its ending in one transaction; uses the reserved room. The first ending stays: a second call
   * changes nothing. `lost`: rows of the run are gone, so these get their numbers when they are settled (breaks.ts).
   */
  end(key: RunKey, rows: readonly SpoolRow[], ending: RunEnding, { stats, lost }: EndFacts = {}): void {
    this.#guard(() =>
      this.#withReserve(() => {
        const run = this.#sql.findRun.get(key.runId, key.fence)
        if (run && this.#sql.findEnding.get(run.run_no)) return
        if (lost) this.#breaks.note(this.#runOf(key).run_no, run?.last_seq ?? 0, lost)
        this.#add(key, rows, stats)
        const changeSet = ending.changeSet ? JSON.stringify(ending.changeSet) : null
        this.#sql.insertEnding.run(
          this.#runOf(key).run_no,
          JSON.stringify(withMark(ending.report, this.#sinceBoot)),
          changeSet,
        )
      }),
    )
  }

  /** Rows after `afterSeq`, in order, up to `maxBytes`, but at least one if there is any. */
  read(key: RunKey, afterSeq: number, maxBytes: number): SpoolRow[] {
    return this.#guard(() => {
      const run = this.#sql.findRun.get(key.runId, key.fence)
      if (!run) return []
      const rows: SpoolRow[] = []
      let bytes = 0
      const until = this.#breaks.keptSeq(run.run_no) ?? maxSeq
      for (const row of this.#sql.readEvents.iterate(run.run_no, afterSeq, run.run_no, until)) {
        if (rows.length > 0 && bytes + row.line.length > maxBytes) break
        const expected = rows.length === 0 ? Math.max(afterSeq, run.acked_seq) + 1 : (rows.at(-1)?.seq ?? 0) + 1
        if (row.seq !== expected || rowCrc(row.seq, row.line) !== row.crc) {
          throw new SpoolDamagedError(`row ${row.seq} of ${key.runId} is not what was written`)
        }
        rows.push({ seq: row.seq, line: row.line })
        bytes += row.line.length
      }
      return rows
    })
  }

  /** Deletes the rows up to `seq` and remembers it. A seq beyond the last row counts as the last row. */
  ack(key: RunKey, seq: number): void {
    this.#guard(() => {
      this.#withReserve(() => {
        const run = this.#sql.findRun.get(key.runId, key.fence)
        if (!run || seq <= run.acked_seq) return
        const upTo = Math.min(seq, this.#breaks.keptSeq(run.run_no) ?? run.last_seq)
        if (upTo <= run.acked_seq) return
        const bytes = this.#sql.sumEvents.get(run.run_no, run.acked_seq, run.run_no, upTo)?.bytes ?? 0
        this.#sql.deleteEvents.run(run.run_no, run.acked_seq, run.run_no, upTo)
        this.#sql.setAcked.run(upTo, Math.max(0, run.pending_bytes - bytes), run.acked_bytes + bytes, run.run_no)
      })
      this.#giveBack()
    })
  }

  /** The control plane has no more than `seq`, whatever it acknowledged before: it was set up anew from a backup. */
  setBack(key: RunKey, seq: number): void {
    this.#guard(() =>
      this.#withReserve(() => {
        const run = this.#sql.findRun.get(key.runId, key.fence)
        if (!run || seq >= run.acked_seq) return
        const { bytes } = this.#breaks.setBack(run, seq)
        this.#sql.setAcked.run(seq, run.pending_bytes, run.acked_bytes - bytes, run.run_no)
      }),
    )
  }

  /** The control plane has the rows up to `ackSeq` and no more: what was written after rows were lost gets its numbers. */
  settle(key: RunKey, ackSeq: number): void {
    this.#guard(() =>
      this.#withReserve(() => {
        const run = this.#sql.findRun.get(key.runId, key.fence)
        const moved = run && this.#breaks.settle(run, ackSeq, this.#world.now())
        if (moved) this.#sql.setMoved.run(moved.lastSeq, moved.pendingBytes, moved.gapBytes, run.run_no)
      }),
    )
  }

  stats(key: RunKey): SpooledStats | null {
    return this.#guard(() => {
      const run = this.#sql.findRun.get(key.runId, key.fence)
      if (!run) return null
      return {
        lastSeq: run.last_seq,
        ackedSeq: run.acked_seq,
        pendingBytes: run.pending_bytes,
        hasLostRows: this.#breaks.has(run.run_no),
        certainSeq: this.#breaks.keptSeq(run.run_no),
        gapBytes: run.gap_bytes,
        toolCalls: run.tool_calls,
        usage: run.usage === null ? null : usageData.parse(JSON.parse(run.usage)),
        sessionId: run.session_id,
        approvals: run.approvals === null ? [] : z.array(askedCall).parse(JSON.parse(run.approvals)),
      }
    })
  }

  ending(key: RunKey): RunEnding | null {
    return this.#ofEnding(key, endingOf)
  }

  /** The time since the run ended; null: it has not, or nobody knows. */
  endedAgoMs(key: RunKey): number | null {
    return this.#ofEnding(key, (row) => agoMs(row, this.#sinceBoot))
  }

  #ofEnding<T>({ runId, fence }: RunKey, read: (row: EndingRow) => T): T | null {
    return this.#guard(() => {
      const run = this.#sql.findRun.get(runId, fence)
      const row = run && this.#sql.findEnding.get(run.run_no)
      return row ? read(row) : null
    })
  }

  /** All runs held, oldest first. */
  runs(): RunSummary[] {
    return this.#guard(() =>
      this.#sql.listRuns.all().map((run) => ({
        runId: run.run_id,
        fence: run.fence,
        lastSeq: run.last_seq,
        ackedSeq: run.acked_seq,
        rows: run.last_seq - run.acked_seq,
        bytes: run.pending_bytes,
        ended: run.ended === 1,
      })),
    )
  }

  /** Forgets a run: its rows, acknowledged or not, and its ending. */
  remove(key: RunKey): void {
    this.#guard(() => {
      this.#withReserve(() => {
        const run = this.#sql.findRun.get(key.runId, key.fence)
        if (!run) return
        this.#sql.deleteEvents.run(run.run_no, 0, run.run_no, maxSeq)
        this.#sql.deleteEnding.run(run.run_no)
        this.#breaks.remove(run.run_no)
        this.#sql.deleteRun.run(run.run_no)
      })
      this.#giveBack()
    })
  }

  /** Returns what appends may still take: the smaller of the file's limit and the disk; null when neither is known. */
  freeBytes(): number | null {
    return this.#guard(() => {
      if (!this.#reserve.ensure()) return 0
      const used =
        Number(this.#db.pragma('page_count', { simple: true })) -
        Number(this.#db.pragma('freelist_count', { simple: true }))
      const disk = freeDiskBytes(this.path)
      const left = Math.max(0, this.#limit.pages - used) * pageBytes
      return disk === null ? left : Math.min(left, disk)
    })
  }

  /** Another process is writing at this moment, or hangs in a write. */
  isLocked(): boolean {
    return this.#guard(() => this.#lock.isHeld())
  }

  close(): void {
    this.#db.close()
  }

  #add(key: RunKey, rows: readonly SpoolRow[], stats: RunStats | undefined): { pendingBytes: number } {
    const run = this.#runOf(key)
    if (this.#sql.findEnding.get(run.run_no)) throw new SpoolOrderError(`run ${key.runId} has its ending`)
    let last = run.last_seq
    let bytes = 0
    for (const row of rows) {
      if (row.seq !== last + 1 || row.seq > maxSeq)
        throw new SpoolOrderError(`row ${row.seq} of ${key.runId} after ${last}`)
      if (row.line.at(-1) !== 0x0a) throw new SpoolError(`row ${row.seq} of ${key.runId} does not end with a newline`)
      this.#sql.insertEvent.run(run.run_no, row.seq, rowCrc(row.seq, row.line), row.line)
      last = row.seq
      bytes += row.line.length
    }
    const pendingBytes = run.pending_bytes + bytes
    this.#sql.setLast.run(last, pendingBytes, run.run_no)
    if (stats) {
      const usage = stats.usage === null ? null : JSON.stringify(stats.usage)
      const approvals = stats.approvals.length === 0 ? null : JSON.stringify(stats.approvals)
      this.#sql.setStats.run(stats.gapBytes, stats.toolCalls, usage, stats.sessionId, approvals, run.run_no)
    }
    return { pendingBytes }
  }

  #runOf(key: RunKey): RunRow {
    const found = this.#sql.findRun.get(key.runId, key.fence)
    if (found) return found
    this.#sql.insertRun.run(key.runId, key.fence)
    return this.#runOf(key)
  }

  /** Terminal rows, and deletions (which need room in the log before they free any), may use what is kept for them. */
  #withReserve(work: () => void): void {
    try {
      this.#lock.write(work)
      return
    } catch (error) {
      if (!(toSpoolError(error) instanceof SpoolFullError)) throw error
    }
    this.#db.pragma(`max_page_count = ${this.#limit.pagesOfEndings}`)
    try {
      try {
        this.#lock.write(work)
      } catch (error) {
        if (!(toSpoolError(error) instanceof SpoolFullError) || !this.#reserve.release()) throw error
        this.#lock.write(work)
      }
    } finally {
      this.#db.pragma(`max_page_count = ${this.#limit.pages}`)
    }
  }

  #giveBack(): void {
    if (!this.#reserve.ensure()) {
      // The disk is full: what the log and free pages hold of it goes back now, so that appends can go on.
      this.#db.pragma('incremental_vacuum')
      this.#db.pragma('wal_checkpoint(truncate)')
      this.#reserve.ensure()
      return
    }
    const free = Number(this.#db.pragma('freelist_count', { simple: true }))
    if (free > 2 * sparePages) this.#db.pragma(`incremental_vacuum(${free - sparePages})`)
  }

  #guard<Result>(work: () => Result): Result {
    try {
      const changed = this.#files.findChanged()
      if (changed !== null) throw new SpoolReplacedError(`${changed} is gone, or another file stands at its path`)
      return work()
    } catch (error) {
      throw toSpoolError(error)
    }
  }
}
