import { closeSync, existsSync, openSync, readdirSync, readSync, renameSync, rmSync, writeSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { Breaks, substituteEndedEvent, type BreakRow } from './breaks.ts'
import { openConnection, pageBytes, type Connection, type ConnectionOptions } from './connection.ts'
import { markedReport } from './end-mark.ts'
import { maxSeq, rowCrc, type ExpectedRun, type Salvage, type SalvagedRun } from './rows.ts'
import { prepareStatements, type RunRow, type SpoolStatements } from './statements.ts'

/** Files of earlier releases do not have all columns. */
type Later = 'approvals' | 'acked_bytes'
type DamagedRun = Omit<RunRow, Later> & Partial<Pick<RunRow, Later>>

/**
 * Sets a damaged spool aside (`<path>.corrupt-<time>`) and fills a new one with what can be trusted: of each run the rows
 * that follow the acknowledged one without a hole and whose checksum holds. What is after a hole stays in the file set
 * aside; it is never sent. Runs that are expected and not found in it have lost all that was not acknowledged.
 */
export function salvage(
  path: string,
  options: ConnectionOptions,
  facts: { now: number; reason: string; expected: readonly ExpectedRun[] },
): Salvage {
  const asidePath = `${path}.corrupt-${new Date(facts.now).toISOString().replaceAll(/[:.]/g, '-')}`
  // The write-ahead log holds committed rows: it goes along under the name SQLite looks for.
  for (const suffix of ['', '-wal']) if (existsSync(path + suffix)) renameSync(path + suffix, asidePath + suffix)
  if (existsSync(`${path}-shm`)) renameSync(`${path}-shm`, `${asidePath}-shm`)
  const copied = makeWhole(path, options, (fresh, freshPath) => {
    // Its first page is in the file itself then, to be lent.
    fresh.pragma('wal_checkpoint(truncate)')
    const found = copyRuns(asidePath, fresh, { freshPath, now: facts.now })
    const isFound = ({ runId, fence }: ExpectedRun) =>
      found.runs.some((run) => run.runId === runId && run.fence === fence)
    // Of a list that was read whole, a run that began just now may be missing.
    noteLost(
      fresh,
      facts.expected.filter((run) => !isFound(run) && (run.isExact || !found.runListRead)),
    )
    return found
  })
  removeOlder(path, asidePath)
  return { asidePath, reason: facts.reason, ...copied }
}

/** Makes a new file where one is gone with all that the runs had in it. */
export function replaceSpool(path: string, options: ConnectionOptions, expected: readonly ExpectedRun[]): void {
  // They belong to the file that is gone.
  for (const suffix of ['-wal', '-shm']) rmSync(path + suffix, { force: true })
  makeWhole(path, options, (fresh) => noteLost(fresh, expected))
}

/**
 * Fills a new file under another name, so that it comes whole: a run host that found it half filled would take the rest of its
 * run's rows for lost, and a daemon that dies meanwhile does this again.
 */
function makeWhole<Result>(
  path: string,
  options: ConnectionOptions,
  work: (fresh: Connection, freshPath: string) => Result,
): Result {
  const freshPath = `${path}.new`
  // One that a crash left here.
  for (const suffix of ['', '-wal', '-shm']) rmSync(freshPath + suffix, { force: true })
  const fresh = openConnection(freshPath, options)
  let result: Result
  try {
    result = work(fresh, freshPath)
    fresh.pragma('wal_checkpoint(truncate)')
  } finally {
    fresh.close()
  }
  renameSync(freshPath, path)
  return result
}

function noteLost(fresh: Connection, runs: readonly ExpectedRun[]): void {
  const insert = fresh.prepare('insert into runs (run_id, fence, last_seq, acked_seq) values (?, ?, ?, ?)')
  const breaks = new Breaks(fresh)
  fresh.transaction(() => {
    for (const { runId, fence, ackedSeq, lastSeq, bytes, isExact } of runs) {
      const runNo = Number(insert.run(runId, fence, ackedSeq, ackedSeq).lastInsertRowid)
      breaks.note(runNo, ackedSeq, { knownSeq: lastSeq, bytes, certainty: isExact ? 'exact' : 'unknown' })
    }
  })()
}

/** So many damaged files stay, for whoever looks for the cause; each may be as large as a spool can be. */
const keptAside = 2

function removeOlder(path: string, newest: string): void {
  const folder = dirname(path)
  const isSetAside = (name: string) => name.startsWith(`${basename(path)}.corrupt-`) && !/-(?:wal|shm)$/.test(name)
  try {
    const older = readdirSync(folder).filter((name) => isSetAside(name) && name !== basename(newest))
    for (const name of older.toSorted().slice(0, -(keptAside - 1)))
      for (const suffix of ['', '-wal', '-shm']) rmSync(join(folder, name + suffix), { force: true })
  } catch {
    // They only take room.
  }
}

interface Copying {
  old: Connection
  fresh: Connection
  /** Of the new file. */
  put: SpoolStatements
  now: number
}

function copyRuns(
  asidePath: string,
  fresh: Connection,
  from: { freshPath: string; now: number },
): Pick<Salvage, 'runs' | 'runListRead'> {
  const runs: SalvagedRun[] = []
  let old: Connection | null = null
  try {
    old = openDamaged(asidePath, from.freshPath)
    const list = readUntilDamage(old.prepare<[], DamagedRun>('select * from runs order by run_no').iterate())
    const copying = { old, fresh, put: prepareStatements(fresh), now: from.now }
    for (const run of list.rows) if (isPlausible(run)) runs.push(copyRun(copying, run))
    return { runs, runListRead: list.whole }
  } catch {
    return { runs, runListRead: false }
  } finally {
    old?.close()
  }
}

const headerBytes = 100

/**
 * Puts the beginning of the new file in the place of one that is broken. All our spools have the same header; and the same first page, which
 * holds the schema, since their tables were made in the same order.
 */
function openDamaged(asidePath: string, freshPath: string): Connection {
  for (const lent of [0, headerBytes]) {
    try {
      borrow(asidePath, freshPath, lent)
      return probed(asidePath)
    } catch {
      // More of it is broken.
    }
  }
  borrow(asidePath, freshPath, pageBytes)
  return probed(asidePath)
}

function borrow(asidePath: string, freshPath: string, bytes: number): void {
  if (bytes === 0) return
  const lent = Buffer.alloc(bytes)
  const from = openSync(freshPath, 'r')
  readSync(from, lent, 0, bytes, 0)
  closeSync(from)
  if (lent.readUInt16BE(16) !== pageBytes) throw new Error('no header to borrow')
  // Zero pages: SQLite counts them itself when the change counter and "version valid for" differ.
  lent.writeUInt32BE(0, 28)
  lent.writeUInt32BE(1, 24)
  lent.writeUInt32BE(0, 92)
  const to = openSync(asidePath, 'r+')
  writeSync(to, lent, 0, bytes, 0)
  closeSync(to)
}

function probed(path: string): Connection {
  const db = new Database(path, { timeout: 5_000 })
  try {
    db.prepare('select count(*) from runs').get()
    for (const table of ['events', 'endings']) db.prepare(`select 1 from ${table} limit 1`)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

function copyRun(copying: Copying, run: DamagedRun): SalvagedRun {
  const { old, fresh, put } = copying
  const events = old
    .prepare<[number, number, number, number], { seq: number; crc: number; line: Buffer }>(
      'select id & 4294967295 as seq, crc, line from events where id > (? << 32 | ?) and id <= (? << 32 | ?) order by id',
    )
    .iterate(run.run_no, run.acked_seq, run.run_no, maxSeq)
  let keptSeq = run.acked_seq
  let keptBytes = 0
  let hadEnding = false
  fresh.transaction(() => {
    try {
      for (const row of events) {
        if (row.seq !== keptSeq + 1 || rowCrc(row.seq, row.line) !== row.crc) break
        put.insertEvent.run(run.run_no, row.seq, row.crc, row.line)
        keptSeq = row.seq
        keptBytes += row.line.length
      }
    } catch {
      // The damaged place of this run: what came before it is kept.
    }
    fresh
      .prepare(
        `insert into runs (run_no, run_id, fence, last_seq, acked_seq, pending_bytes, gap_bytes, tool_calls, usage, session_id, approvals, acked_bytes)
         values (@run_no, @run_id, @fence, @last_seq, @acked_seq, @pending_bytes, @gap_bytes, @tool_calls, @usage, @session_id, @approvals, @acked_bytes)`,
      )
      .run({ approvals: null, acked_bytes: 0, ...run, last_seq: keptSeq, pending_bytes: keptBytes })
    const lost = { knownSeq: run.last_seq, bytes: run.pending_bytes - keptBytes }
    new Breaks(fresh).carry(run.run_no, noteOf(old, run), keptSeq < run.last_seq ? { keptSeq, lost } : null)
    hadEnding = copyEnding(copying, run, keptSeq)
  })()
  return { runId: run.run_id, fence: run.fence, ackedSeq: run.acked_seq, keptSeq, knownSeq: run.last_seq, hadEnding }
}

/** Returns what an earlier loss left uncertain of the run; null where there was none, or the note is lost itself. */
function noteOf(old: Connection, run: DamagedRun): BreakRow | null {
  try {
    const note = old.prepare<[number], BreakRow>('select * from breaks where run_no = ?').get(run.run_no)
    return note && note.kept_seq >= 0 && note.kept_seq <= note.known_seq && note.known_seq <= maxSeq ? note : null
  } catch {
    return null
  }
}

/** The ending of the run is known even where rows were lost: then its last event is written anew, after those that were kept. */
function copyEnding({ old, fresh, put, now }: Copying, run: DamagedRun, keptSeq: number): boolean {
  try {
    const ending = old
      .prepare<[number], { report: string; change_set: string | null }>(
        'select report, change_set from endings where run_no = ?',
      )
      .get(run.run_no)
    if (!ending) return false
    const report = markedReport.parse(JSON.parse(ending.report))
    if (ending.change_set !== null) JSON.parse(ending.change_set)
    const isWhole = keptSeq === run.last_seq
    const seq = keptSeq + 1
    const amended = isWhole ? report : { ...report, eventCount: seq, logHash: '' }
    put.insertEnding.run(run.run_no, JSON.stringify(amended), ending.change_set)
    if (isWhole) return true
    const line = Buffer.from(`${JSON.stringify({ ...substituteEndedEvent(report, now), seq })}\n`)
    put.insertEvent.run(run.run_no, seq, rowCrc(seq, line), line)
    fresh
      .prepare('update runs set last_seq = ?, pending_bytes = pending_bytes + ? where run_no = ?')
      .run(seq, line.length, run.run_no)
    return true
  } catch {
    return false
  }
}

function isPlausible(run: DamagedRun): boolean {
  return (
    [run.run_no, run.fence, run.last_seq, run.acked_seq, run.pending_bytes].every(
      (value) => Number.isSafeInteger(value) && value >= 0,
    ) &&
    run.acked_seq <= run.last_seq &&
    run.last_seq <= maxSeq &&
    typeof run.run_id === 'string' &&
    run.run_id.length <= 64
  )
}

function readUntilDamage<Row>(rows: IterableIterator<Row>): { rows: Row[]; whole: boolean } {
  const read: Row[] = []
  try {
    for (const row of rows) read.push(row)
    return { rows: read, whole: true }
  } catch {
    return { rows: read, whole: false }
  }
}
