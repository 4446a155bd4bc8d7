import type { RunId } from '../../shared/lib/ids.ts'
import type { Connection } from './connection.ts'

export interface RunRow {
  run_no: number
  run_id: RunId
  fence: number
  last_seq: number
  acked_seq: number
  pending_bytes: number
  gap_bytes: number
  tool_calls: number
  usage: string | null
  session_id: string | null
  approvals: string | null
  /** Bytes of the rows that were acknowledged. */
  acked_bytes: number
}

/** An event's id is `run_no << 32 | seq`; the shifts are SQLite's, since JavaScript's work on 32 bits. */
const between = 'where id > (? << 32 | ?) and id <= (? << 32 | ?)'

export type SpoolStatements = ReturnType<typeof prepareStatements>

export function prepareStatements(db: Connection) {
  return {
    findRun: db.prepare<[string, number], RunRow>('select * from runs where run_id = ? and fence = ?'),
    insertRun: db.prepare<[string, number]>('insert into runs (run_id, fence) values (?, ?)'),
    deleteRun: db.prepare<[number]>('delete from runs where run_no = ?'),
    listRuns: db.prepare<[], RunRow & { ended: number }>(
      'select *, exists (select 1 from endings where endings.run_no = runs.run_no) as ended from runs order by run_no',
    ),
    setLast: db.prepare<[number, number, number]>('update runs set last_seq = ?, pending_bytes = ? where run_no = ?'),
    setAcked: db.prepare<[number, number, number, number]>(
      'update runs set acked_seq = ?, pending_bytes = ?, acked_bytes = ? where run_no = ?',
    ),
    setMoved: db.prepare<[number, number, number, number]>(
      'update runs set last_seq = ?, pending_bytes = ?, gap_bytes = ? where run_no = ?',
    ),
    setStats: db.prepare<[number, number, string | null, string | null, string | null, number]>(
      'update runs set gap_bytes = ?, tool_calls = ?, usage = ?, session_id = ?, approvals = ? where run_no = ?',
    ),
    insertEvent: db.prepare<[number, number, number, Uint8Array]>(
      'insert into events (id, crc, line) values (? << 32 | ?, ?, ?)',
    ),
    readEvents: db.prepare<[number, number, number, number], { seq: number; crc: number; line: Buffer }>(
      `select id & 4294967295 as seq, crc, line from events ${between} order by id`,
    ),
    sumEvents: db.prepare<[number, number, number, number], { bytes: number | null }>(
      `select sum(length(line)) as bytes from events ${between}`,
    ),
    deleteEvents: db.prepare<[number, number, number, number]>(`delete from events ${between}`),
    findEnding: db.prepare<[number], { report: string; change_set: string | null }>(
      'select report, change_set from endings where run_no = ?',
    ),
    insertEnding: db.prepare<[number, string, string | null]>(
      'insert into endings (run_no, report, change_set) values (?, ?, ?)',
    ),
    deleteEnding: db.prepare<[number]>('delete from endings where run_no = ?'),
  }
}
