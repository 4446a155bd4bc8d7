import type { Database, Statement } from 'better-sqlite3'
import type { EndReport } from '../../shared/device/protocol.ts'
import { maxSeq, rowCrc } from './rows.ts'
import type { RunRow } from './statements.ts'

export interface BreakRow {
  kept_seq: number
  known_seq: number
  lost_bytes: number
  is_settled: number
  is_unknown: number
  reason: string
}

/**
 * `bytes`: of the rows after the last one that was kept, as the spool counts them. `certainty`: `exact` where whoever wrote the rows
 * tells of them, `unknown` where there may have been more.
 */
export interface LostRows {
  knownSeq: number
  bytes: number
  certainty?: 'exact' | 'unknown'
}

export interface Moved {
  lastSeq: number
  pendingBytes: number
  gapBytes: number
}

const damaged = 'spool_damaged'
const rowsAfter = 'where id > (? << 32 | ?) and id <= (? << 32 | ?)'

export class Breaks {
  readonly #find: Statement<[number], BreakRow>
  readonly #insert: Statement<[number, number, number, number, number]>
  readonly #add: Statement<[number, number, number, number]>
  readonly #replace: Statement<[number, number, number, number, number, string]>
  readonly #remove: Statement<[number]>
  readonly #settle: Statement<[number]>
  readonly #read: Statement<[number, number, number, number], { seq: number; line: Buffer }>
  readonly #delete: Statement<[number, number, number, number]>
  readonly #put: Statement<[number, number, number, Uint8Array]>
  readonly #report: Statement<[string, number]>
  readonly #ending: Statement<[number], { report: string }>

  constructor(db: Database) {
    this.#find = db.prepare('select * from breaks where run_no = ?')
    this.#insert = db.prepare(
      'insert or ignore into breaks (run_no, kept_seq, known_seq, lost_bytes, is_unknown) values (?, ?, ?, ?, ?)',
    )
    this.#add = db.prepare(
      'update breaks set known_seq = max(known_seq, ?), lost_bytes = max(lost_bytes, ?), is_unknown = min(is_unknown, ?) where run_no = ? and is_settled = 0',
    )
    this.#replace = db.prepare(
      'insert or replace into breaks (run_no, kept_seq, known_seq, lost_bytes, is_unknown, reason) values (?, ?, ?, ?, ?, ?)',
    )
    this.#remove = db.prepare('delete from breaks where run_no = ?')
    this.#settle = db.prepare('update breaks set is_settled = 1 where run_no = ?')
    this.#read = db.prepare(`select id & 4294967295 as seq, line from events ${rowsAfter} order by id`)
    this.#delete = db.prepare(`delete from events ${rowsAfter}`)
    this.#put = db.prepare('insert into events (id, crc, line) values (? << 32 | ?, ?, ?)')
    this.#report = db.prepare('update endings set report = ? where run_no = ?')
    this.#ending = db.prepare('select report from endings where run_no = ?')
  }

  has(runNo: number): boolean {
    return this.#find.get(runNo) !== undefined
  }

  /** The last row whose number is certain; null: all are. */
  keptSeq(runNo: number): number | null {
    const found = this.#find.get(runNo)
    return found && found.is_settled === 0 ? found.kept_seq : null
  }

  /** The first note of a run says from where on rows are lost; later ones may know of more of them. */
  note(runNo: number, keptSeq: number, lost: LostRows): void {
    const known = Math.max(lost.knownSeq, keptSeq)
    const bytes = Math.max(0, lost.bytes)
    this.#insert.run(runNo, keptSeq, known, bytes, lost.certainty === 'unknown' ? 1 : 0)
    this.#add.run(known, bytes, lost.certainty === 'exact' ? 0 : 1, runNo)
  }

  /**
   * Joins what the file that this one was salvaged from noted of the run with what was lost with it (null: nothing). A note that
   * is not settled counts on: rows after its `kept_seq` were never sent, so they are neither more certain now nor missed.
   * One that is settled had certain numbers; what is lost after that is noted anew.
   */
  carry(runNo: number, old: BreakRow | null, loss: { keptSeq: number; lost: LostRows } | null): void {
    if (old !== null && old.is_settled === 0) {
      const keptSeq = Math.min(old.kept_seq, loss?.keptSeq ?? old.kept_seq)
      const bytes = keptSeq < old.kept_seq ? Math.max(old.lost_bytes, loss?.lost.bytes ?? 0) : old.lost_bytes
      this.#replace.run(runNo, keptSeq, old.known_seq, bytes, old.is_unknown ?? 0, old.reason ?? damaged)
      return
    }
    if (loss !== null) return this.note(runNo, loss.keptSeq, loss.lost)
    if (old === null) return
    this.note(runNo, old.kept_seq, { knownSeq: old.known_seq, bytes: old.lost_bytes })
    this.#settle.run(runNo)
  }

  /**
   * The control plane has no more than `seq`, and rows after that were deleted when it said that it had them: they are lost. Those
   * that follow get new numbers as after any loss. Returns the bytes of those that are lost by that: of single rows they are not
   * known any more, so each counts as the mean of all.
   */
  setBack({ run_no: runNo, acked_seq: acked, acked_bytes: ackedBytes }: RunRow, seq: number): { bytes: number } {
    const old = this.#find.get(runNo)
    const before = old && old.is_settled === 0 ? old : null
    const lostBefore = before ? before.known_seq - before.kept_seq : 0
    const bytes = Math.round((ackedBytes * (acked - seq)) / acked)
    const reason = before?.reason ?? 'server_restored'
    this.#replace.run(
      runNo,
      seq,
      acked + lostBefore,
      bytes + (before?.lost_bytes ?? 0),
      before?.is_unknown ?? 0,
      reason,
    )
    return { bytes }
  }

  remove(runNo: number): void {
    this.#remove.run(runNo)
  }

  /** Null when there is nothing to settle, or no ending yet that comes after what is lost. Within a transaction of the caller, who keeps the answer with the run. */
  settle(run: RunRow, ackSeq: number, now: number): Moved | null {
    const found = this.#find.get(run.run_no)
    const ending = this.#ending.get(run.run_no)
    if (!found || !ending || found.is_settled !== 0) return null
    const { kept_seq: kept, known_seq: known, lost_bytes: lostBytes } = found
    const after = Math.max(kept, ackSeq)
    const report = JSON.parse(ending.report) as EndReport
    const fresh = this.#read.all(run.run_no, kept, run.run_no, maxSeq).map(({ line }) => eventOf(line))
    // It was acknowledged and is gone on both ends, so it is told anew.
    const isEndLost = fresh.at(-1)?.kind !== 'ended'
    const lostRows = Math.max(0, known - after - (isEndLost ? 1 : 0))
    const isUnknown = found.is_unknown !== 0
    const estimate = lostRows === 0 ? 0 : Math.round((lostBytes * lostRows) / (known - kept))
    const gapBytes = lostRows === 0 && !isUnknown ? 0 : Math.max(1, estimate)
    const at = fresh[0]?.at ?? now
    const data = {
      bytes: gapBytes,
      reason: found.reason,
      ...(lostRows > 0 && { events: lostRows }),
      ...(isUnknown && { unknown: true }),
    }
    const gap = { seq: 0, at, kind: 'gap', data }
    const events = [
      ...(gapBytes === 0 ? [] : [gap]),
      ...fresh,
      ...(isEndLost ? [substituteEndedEvent(report, now)] : []),
    ]
    this.#delete.run(run.run_no, kept, run.run_no, maxSeq)
    let lastSeq = after
    for (const event of events) {
      const line = Buffer.from(`${JSON.stringify({ ...event, seq: ++lastSeq })}\n`)
      this.#put.run(run.run_no, lastSeq, rowCrc(lastSeq, line), line)
    }
    const amended = { ...report, eventCount: lastSeq, logHash: '', gapBytes: report.gapBytes + gapBytes }
    this.#report.run(JSON.stringify(amended), run.run_no)
    this.#settle.run(run.run_no)
    const rows = this.#read.all(run.run_no, run.acked_seq, run.run_no, maxSeq)
    const pendingBytes = rows.reduce((sum, { line }) => sum + line.length, 0)
    return { lastSeq, pendingBytes, gapBytes: run.gap_bytes + gapBytes }
  }
}

function eventOf(line: Buffer): { at: number; kind: string } {
  return JSON.parse(line.toString('utf8')) as { at: number; kind: string }
}

/** The last event of a run whose own was lost. */
export function substituteEndedEvent({ exitReason, exitCode, signal, message }: EndReport, at: number) {
  const data = { exitReason, exitCode, signal, ...(message !== null && { message }) }
  return { seq: 0, at, kind: 'ended', data }
}
