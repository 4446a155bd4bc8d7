import { idFrom, type RunId } from '../../../shared/lib/ids.ts'
import { spawn } from 'node:child_process'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openConnection } from '../../../device-manager/spool/connection.ts'
import {
  openSpool,
  SpoolBusyError,
  SpoolFullError,
  SpoolOrderError,
  type Spool,
} from '../../../device-manager/spool/spool.ts'
import type { EndReport } from '../../../shared/device/protocol.ts'
import { askedCallFixture } from '../../kit/asked-call.ts'
import { isLong } from '../../kit/forms.ts'

let folder: string
let path: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-spool-'))
  path = join(folder, 'spool.db')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const key = { runId: idFrom<RunId>('run_a'), fence: 1 }
const row = (seq: number, size = 50) => ({
  seq,
  line: Buffer.from(`${JSON.stringify({ seq, x: 'x'.repeat(size) })}\n`),
})
const rows = (from: number, to: number, size = 50) =>
  Array.from({ length: to - from + 1 }, (_, i) => row(from + i, size))
const report: EndReport = {
  exitReason: 'completed',
  exitCode: 0,
  signal: null,
  message: null,
  eventCount: 3,
  logHash: 'h',
  gapBytes: 0,
  usage: { inputTokens: 1 },
  toolCallCount: 2,
  sessionId: 's',
  harnessVersion: '1',
  forced: false,
}
const open = (options = {}) => openSpool(path, { reserveBytes: 64 * 1024, ...options })
const seqsOf = (spool: Spool, of = key) => spool.read(of, 0, 1e9).map(({ seq }) => seq)

describe('rows', () => {
  test('are read in order, cut by size but never to nothing, and kept over a restart', () => {
    const spool = open()
    spool.append(key, rows(1, 3))
    const approvals = [askedCallFixture()]
    spool.append(key, [row(4, 100_000)], {
      gapBytes: 7,
      toolCalls: 2,
      usage: { outputTokens: 3 },
      sessionId: 'abc',
      approvals,
    })
    spool.close()
    const again = open()
    expect(again.read(key, 0, 130).map(({ seq }) => seq)).toEqual([1])
    expect(again.read(key, 3, 1).map(({ seq }) => seq)).toEqual([4])
    expect(Buffer.from(again.read(key, 3, 1)[0]!.line)).toEqual(row(4, 100_000).line)
    expect(again.read(key, 4, 100)).toEqual([])
    expect(again.stats(key)).toMatchObject({
      lastSeq: 4,
      ackedSeq: 0,
      gapBytes: 7,
      toolCalls: 2,
      usage: { outputTokens: 3 },
      sessionId: 'abc',
      approvals,
    })
    again.close()
  })

  test('and totals of a file of the first release are taken over', () => {
    open().close()
    const old = new Database(path)
    old.exec('alter table runs drop column approvals')
    old.pragma('user_version = 1')
    old.exec("insert into runs (run_id, fence, last_seq, acked_seq, session_id) values ('run_old', 1, 5, 5, 'abc')")
    old.close()
    const spool = open()
    expect(spool.stats({ runId: idFrom('run_old'), fence: 1 })).toMatchObject({
      lastSeq: 5,
      sessionId: 'abc',
      approvals: [],
    })
    spool.append({ runId: idFrom('run_old'), fence: 1 }, [row(6)])
    spool.close()
    const again = open()
    expect(again.salvage).toBeNull()
    expect(again.stats({ runId: idFrom('run_old'), fence: 1 })).toMatchObject({ lastSeq: 6 })
    again.close()
  })

  test('that do not follow are refused, all of them', () => {
    const spool = open()
    spool.append(key, rows(1, 3))
    expect(() => spool.append(key, [row(4), row(6)])).toThrow(SpoolOrderError)
    expect(() => spool.append(key, [row(3)])).toThrow(SpoolOrderError)
    expect(() => spool.append({ runId: idFrom('run_b'), fence: 1 }, [row(2)])).toThrow(SpoolOrderError)
    expect(seqsOf(spool)).toEqual([1, 2, 3])
    expect(spool.runs().map(({ runId }) => runId)).toEqual(['run_a'])
    spool.close()
  })

  test('of two fences of one run are apart', () => {
    const spool = open()
    spool.append(key, rows(1, 2))
    spool.append({ ...key, fence: 2 }, rows(1, 1))
    expect(spool.runs()).toMatchObject([
      { fence: 1, rows: 2 },
      { fence: 2, rows: 1 },
    ])
    spool.remove(key)
    expect(seqsOf(spool, { ...key, fence: 2 })).toEqual([1])
    expect(spool.stats(key)).toBeNull()
    spool.close()
  })

  test('go with their acknowledgement, which is remembered and may be repeated or come late', () => {
    const spool = open()
    const { pendingBytes } = spool.append(key, rows(1, 10))
    spool.ack(key, 4)
    spool.ack(key, 2)
    spool.ack(key, 4)
    expect(seqsOf(spool)).toEqual([5, 6, 7, 8, 9, 10])
    expect(spool.stats(key)).toMatchObject({ ackedSeq: 4, lastSeq: 10 })
    expect(spool.stats(key)!.pendingBytes).toBeLessThan(pendingBytes)
    spool.ack(key, 99)
    expect(spool.runs()).toMatchObject([{ rows: 0, bytes: 0, ackedSeq: 10, lastSeq: 10, ended: false }])
    spool.append(key, [row(11)])
    expect(seqsOf(spool)).toEqual([11])
    spool.close()
  })

  test('and the ending come together; the first ending stays and nothing follows it', () => {
    const spool = open()
    spool.append(key, rows(1, 2))
    const changeSet = { ok: false, code: 'source_unknown', message: 'no' } as const
    spool.end(key, [row(3)], { report, changeSet })
    spool.end(key, [row(4)], { report: { ...report, exitReason: 'crashed' }, changeSet: null })
    expect(seqsOf(spool)).toEqual([1, 2, 3])
    expect(spool.ending(key)).toEqual({ report, changeSet })
    expect(() => spool.append(key, [row(4)])).toThrow(SpoolOrderError)
    expect(spool.runs()).toMatchObject([{ ended: true, lastSeq: 3 }])
    spool.close()
  })

  test('and how long ago it ended is known to another process of the same boot, whatever the wall clock says', () => {
    let [now, booted] = [1_000_000, 5_000]
    const clocks = { world: { now: () => now }, sinceBoot: () => booted }
    const writer = open(clocks)
    expect(writer.endedAgoMs(key)).toBeNull()
    writer.end(key, rows(1, 3), { report, changeSet: null })
    writer.close()
    ;[now, booted] = [now + 86_400_000, booted + 143_000]
    const reader = open(clocks)
    expect(reader.endedAgoMs(key)).toBe(143_000)
    // The machine was started anew: its clock begins at another moment.
    booted = 10
    expect(reader.endedAgoMs(key)).toBeNull()
    reader.close()
    const raw = new Database(path)
    const change = (from: string, to: string) =>
      raw.prepare('update endings set report = replace(report, ?, ?)').run(from, to)
    change('"bootId":"', '"bootId":"other')
    booted = 200_000
    const other = open(clocks)
    expect(other.endedAgoMs(key)).toBeNull()
    // As an earlier release wrote it.
    change('"endMark"', '"unknown"')
    expect([other.endedAgoMs(key), other.ending(key)?.report]).toEqual([null, report])
    other.close()
    raw.close()
  })
})

describe('the file', () => {
  test('is in WAL mode with synchronous=FULL after every open, not only the first', () => {
    for (let round = 0; round < 3; round++) {
      const db = openConnection(path, { busyTimeoutMs: 100, maxPageCount: 1000 })
      expect(db.pragma('journal_mode', { simple: true })).toBe('wal')
      expect(db.pragma('synchronous', { simple: true })).toBe(2)
      db.close()
    }
  })

  test('is this user’s alone and gives room back', () => {
    // In either form more bytes than the file may have at the end.
    const count = isLong ? 3000 : 1500
    for (let round = 0; round < 2; round++) {
      const spool = open()
      spool.append(key, rows(round * count + 1, round * count + count, 30_000))
      expect(statSync(path).mode & 0o777).toBe(0o600)
      spool.ack(key, round * count + count)
      spool.close()
    }
    expect(readdirSync(folder).sort()).toEqual(['spool.db', 'spool.db.reserve'])
    expect(statSync(path).size).toBeLessThan(40 * 1024 * 1024)
    const raw = new Database(path)
    expect(raw.pragma('page_size', { simple: true })).toBe(16_384)
    raw.close()
  })

  test('the write-ahead log does not grow for ever', () => {
    const spool = open()
    for (let seq = 1; seq <= (isLong ? 3000 : 1000); seq++) spool.append(key, [row(seq, 10_000)])
    expect(statSync(`${path}-wal`).size).toBeLessThan(10 * 1024 * 1024)
    spool.close()
  })
})

describe('reserved room', () => {
  test('at the limit of the file an append throws and writes nothing; the ending still fits, then all goes on', () => {
    const spool = open({ maxPageCount: 100, reservedPages: 40 })
    let seq = 0
    expect(() => {
      for (; seq < 1000; seq++) spool.append(key, [row(seq + 1, 15_000)])
    }).toThrow(SpoolFullError)
    expect(spool.stats(key)!.lastSeq).toBe(seq)
    expect(spool.freeBytes()).toBeLessThan(16_384 * 4)
    spool.end(key, [row(seq + 1, 100_000)], { report, changeSet: null })
    expect(spool.ending(key)?.report).toEqual(report)
    const other = { runId: idFrom<RunId>('run_b'), fence: 1 }
    expect(() => spool.append(other, rows(1, 4, 15_000))).toThrow(SpoolFullError)
    spool.ack(key, seq)
    spool.append(other, rows(1, 4, 15_000))
    spool.close()
  })

  test('without its reserve nothing is appended, with room for one it is made again', () => {
    const spool = open({ reserveBytes: 1e15 })
    expect(existsSync(`${path}.reserve`)).toBe(false)
    expect(() => spool.append(key, rows(1, 1))).toThrow(SpoolFullError)
    spool.end(key, rows(1, 1), { report, changeSet: null })
    spool.close()
    const roomy = open()
    unlinkSync(`${path}.reserve`)
    roomy.append({ runId: idFrom('run_b'), fence: 1 }, rows(1, 1))
    expect(existsSync(`${path}.reserve`)).toBe(true)
    roomy.close()
  })

  test('a reserve that a killed process left half written is filled', () => {
    writeFileSync(`${path}.reserve`, Buffer.alloc(1000))
    const spool = open()
    expect(statSync(`${path}.reserve`).size).toBe(64 * 1024)
    truncateSync(`${path}.reserve`, 1)
    spool.append(key, rows(1, 1))
    expect(statSync(`${path}.reserve`).size).toBe(64 * 1024)
    spool.close()
  })
})

describe('several processes', () => {
  test('write and read at once; nothing is lost, doubled or out of order', async () => {
    const script = resolve(import.meta.dirname, 'append-rows.ts')
    // No real writer goes on without a pause, by which another one may be kept waiting for as long as it writes.
    const spool = open({ busyTimeoutMs: 60_000 })
    const writers = ['run_1', 'run_2', 'run_3'].map((runId) => {
      const child = spawn(process.execPath, [script, path, runId, '1500'], { stdio: ['ignore', 'ignore', 'inherit'] })
      return { runId, exited: new Promise((resolve) => child.once('exit', resolve)) }
    })
    const allExited = Promise.all(writers.map(({ exited }) => exited))
    const got = new Map(writers.map(({ runId }) => [runId, [] as number[]]))
    const take = () => {
      for (const { runId } of writers) {
        const of = { runId: idFrom<RunId>(runId), fence: 1 }
        const read = spool.read(of, spool.stats(of)?.ackedSeq ?? 0, 20_000)
        got.get(runId)!.push(...read.map(({ line }) => (JSON.parse(line.toString()) as { seq: number }).seq))
        if (read.length > 0) spool.ack(of, read.at(-1)!.seq)
      }
    }
    const done = allExited.then((codes) => ({ codes }))
    let finished: { codes: unknown[] } | null = null
    while (!finished) {
      take()
      finished = await Promise.race([done, new Promise<null>((resolve) => setImmediate(resolve, null))])
    }
    expect(finished.codes).toEqual([0, 0, 0])
    while (spool.runs().some(({ rows }) => rows > 0)) take()
    const all = Array.from({ length: 1500 }, (_, i) => i + 1)
    for (const { runId } of writers) expect(got.get(runId)).toEqual(all)
    spool.close()
  })

  test('a lock that is held for long is its own error, and nothing was written', () => {
    const spool = open({ busyTimeoutMs: 50 })
    spool.append(key, rows(1, 1))
    const holder = new Database(path)
    holder.exec('begin immediate')
    expect(() => spool.append(key, rows(2, 2))).toThrow(SpoolBusyError)
    expect(seqsOf(spool)).toEqual([1])
    holder.exec('rollback')
    holder.close()
    spool.append(key, rows(2, 2))
    spool.close()
  })
})
