import type { Statement } from 'better-sqlite3'
import type { Connection } from './connection.ts'

export interface RunRow {
  run_no: number
  run_id: string
  fence: number
  last_seq: number
  acked_seq: number
  pending_bytes: number
  gap_bytes: number
  tool_calls: number
  usage: string | null
  session_id: string | null
  approvals: string | null
}

export interface SpoolStatements {
  findRun: Statement<[string, number], RunRow>
  insertRun: Statement<[string, number]>
  deleteRun: Statement<[number]>
  listRuns: Statement<[], RunRow & { ended: number }>
  setLast: Statement<[number, number, number]>
  setAcked: Statement<[number, number, number]>
  setMoved: Statement<[number, number, number, number]>
  setStats: Statement<[number, number, string | null, string | null, string | null, number]>
  insertEvent: Statement<[number, number, number, Uint8Array]>
  readEvents: Statement<[number, number, number, number], { seq: number; crc: number; line: Buffer }>
  sumEvents: Statement<[number, number, number, number], { bytes: number | null }>
  deleteEvents: Statement<[number, number, number, number]>
  findEnding: Statement<[number], { report: string; change_set: string | null }>
  insertEnding: Statement<[number, string, string | null]>
  deleteEnding: Statement<[number]>
}

/** An event's id is `run_no << 32 | seq`; the shifts are SQLite's, since JavaScript's work on 32 bits. */
const between = 'where id > (? << 32 | ?) and id <= (? << 32 | ?)'

export function prepareStatements(db: Connection): SpoolStatements {
  return {
    findRun: db.prepare('select * from runs where run_id = ? and fence = ?'),
    insertRun: db.prepare('insert into runs (run_id, fence) values (?, ?)'),
    deleteRun: db.prepare('delete from runs where run_no = ?'),
    listRuns: db.prepare(
      'select *, exists (select 1 from endings where endings.run_no = runs.run_no) as ended from runs order by run_no',
    ),
    setLast: db.prepare('update runs set last_seq = ?, pending_bytes = ? where run_no = ?'),
    setAcked: db.prepare('update runs set acked_seq = ?, pending_bytes = ? where run_no = ?'),
    setMoved: db.prepare('update runs set last_seq = ?, pending_bytes = ?, gap_bytes = ? where run_no = ?'),
    setStats: db.prepare(
      'update runs set gap_bytes = ?, tool_calls = ?, usage = ?, session_id = ?, approvals = ? where run_no = ?',
    ),
    insertEvent: db.prepare('insert into events (id, crc, line) values (? << 32 | ?, ?, ?)'),
    readEvents: db.prepare(`select id & 4294967295 as seq, crc, line from events ${between} order by id`),
    sumEvents: db.prepare(`select sum(length(line)) as bytes from events ${between}`),
    deleteEvents: db.prepare(`delete from events ${between}`),
    findEnding: db.prepare('select report, change_set from endings where run_no = ?'),
    insertEnding: db.prepare('insert into endings (run_no, report, change_set) values (?, ?, ?)'),
    deleteEnding: db.prepare('delete from endings where run_no = ?'),
  }
}
