import { idFrom } from '../../../shared/lib/ids.ts'
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import {
  openSpool,
  SpoolDamagedError,
  SpoolReplacedError,
  SpoolUnavailableError,
  type RunKey,
  type Spool,
} from '../../../device-manager/spool/spool.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { StandingSpool } from '../../../device-manager/spool/standing-spool.ts'
import { endReport } from '../../kit/end-report.ts'
import { repeats } from '../../kit/forms.ts'

let folder: string
let path: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-damage-'))
  path = join(folder, 'spool.db')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const keys: RunKey[] = ['run_a', 'run_b', 'run_c'].map((runId) => ({ runId: idFrom(runId), fence: 3 }))
const lineOf = (runId: string, seq: number) =>
  Buffer.from(`${JSON.stringify({ seq, runId, x: `${seq}-`.repeat(seq % 300) })}\n`)
const rowsEach = 600
const acked = 100
const open = (options = {}) =>
  openSpool(path, { reserveBytes: 64 * 1024, world: { ...realWorld, now: () => 1_767_225_600_000 }, ...options })

/** Three runs, interleaved, with an acknowledged start each. Written once: each row is a transaction of its own. */
let filledFolder: string
let filled: string
beforeAll(() => {
  filledFolder = mkdtempSync(join(tmpdir(), 'svc-filled-'))
  filled = join(filledFolder, 'spool.db')
  const spool = openSpool(filled, { reserveBytes: 64 * 1024 })
  for (let seq = 1; seq <= rowsEach; seq++)
    for (const key of keys) spool.append(key, [{ seq, line: lineOf(key.runId, seq) }])
  for (const key of keys) spool.ack(key, acked)
  spool.close()
})
afterAll(() => rmSync(filledFolder, { recursive: true, force: true }))
const fill = () => copyFileSync(filled, path)

/** All that is left is what was written, in order, without a hole, from the acknowledged row on; and nothing else. */
function checkLeft(spool: Spool): number {
  let left = 0
  for (const run of spool.runs()) {
    const key = keys.find(({ runId, fence }) => runId === run.runId && fence === run.fence)
    expect(key).toBeDefined()
    expect(run.ackedSeq).toBe(acked)
    const rows = spool.read(key!, acked, 1e9)
    rows.forEach(({ seq, line }, i) => {
      expect(seq).toBe(acked + 1 + i)
      expect(Buffer.from(line).equals(lineOf(key!.runId, seq))).toBe(true)
    })
    expect(run.lastSeq).toBe(acked + rows.length)
    left += rows.length
  }
  return left
}

/** True when the file was set aside. Throws on anything that is not as it should be. */
function openDamaged(): boolean {
  const spool = open()
  try {
    if (!spool.salvage) {
      // The check of the whole file saw nothing; each row is still checked when it is read.
      try {
        checkLeft(spool)
      } catch (error) {
        if (!(error instanceof SpoolDamagedError)) throw error
      }
      return false
    }
    if (!existsSync(spool.salvage.asidePath)) throw new Error('nothing was set aside')
    for (const run of spool.salvage.runs)
      if (run.keptSeq !== spool.stats(run)?.lastSeq) throw new Error('wrong account')
    checkLeft(spool)
    const [key] = keys as [RunKey]
    spool.append(key, [{ seq: (spool.stats(key)?.lastSeq ?? 0) + 1, line: lineOf(key.runId, 1) }])
    return true
  } finally {
    spool.close()
  }
}

/** A small generator with a seed that a failure prints. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

describe('a damaged spool', () => {
  test('with bytes overwritten anywhere never throws, never yields garbage, and tells what was lost', () => {
    fill()
    const whole = readFileSync(path)
    const seed = Date.now() % 1_000_000
    const random = randomFrom(seed)
    let salvaged = 0
    for (let round = 0; round < repeats('SPOOL_DAMAGES', { short: 40, long: 60 }); round++) {
      const bytes = Buffer.from(whole)
      const at = random(bytes.length)
      const length = [1, 40, 3_000, 40_000][round % 4]!
      for (let i = at; i < Math.min(at + length, bytes.length); i++) bytes[i] = bytes[i]! ^ (1 + random(255))
      for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
      writeFileSync(path, bytes)
      try {
        if (openDamaged()) salvaged++
      } catch (error) {
        throw new Error(`seed ${seed}, round ${round}: ${length} bytes at ${at}`, { cause: error })
      }
    }
    expect(salvaged).toBeGreaterThan(5)
  })

  test('with its header gone keeps everything', () => {
    fill()
    const bytes = readFileSync(path)
    bytes.fill(0xee, 0, 100)
    writeFileSync(path, bytes)
    const spool = open()
    expect(spool.salvage).toMatchObject({ runListRead: true, asidePath: `${path}.corrupt-2026-01-01T00-00-00-000Z` })
    expect(spool.salvage!.runs).toMatchObject(
      keys.map((key) => ({ ...key, ackedSeq: acked, keptSeq: rowsEach, knownSeq: rowsEach })),
    )
    expect(checkLeft(spool)).toBe(3 * (rowsEach - acked))
    spool.close()
  })

  test.for([
    ['all of it', 0, 16_384],
    ['all but the header', 100, 16_384],
    ['the names of its tables', 15_000, 16_384],
  ] as const)('with its first page gone (%s) keeps everything', ([, from, to]) => {
    fill()
    const bytes = readFileSync(path)
    bytes.fill(0xee, from, to)
    writeFileSync(path, bytes)
    const spool = open()
    expect(spool.salvage).toMatchObject({ runListRead: true })
    expect(spool.salvage!.runs).toMatchObject(
      keys.map((key) => ({ ...key, ackedSeq: acked, keptSeq: rowsEach, knownSeq: rowsEach })),
    )
    expect(checkLeft(spool)).toBe(3 * (rowsEach - acked))
    spool.close()
  })

  test('cut off at the end keeps what is before, and says what the file had known', () => {
    fill()
    truncateSync(path, Math.floor(statSync(path).size / 2 / 16_384) * 16_384)
    const spool = open()
    expect(spool.salvage).not.toBeNull()
    const left = checkLeft(spool)
    expect(left).toBeGreaterThan(0)
    expect(left).toBeLessThan(3 * (rowsEach - acked))
    for (const run of spool.salvage!.runs) expect(run.knownSeq).toBe(rowsEach)
    spool.close()
  })

  test('that is no database at all becomes an empty one', () => {
    writeFileSync(path, 'this is not a database '.repeat(10_000))
    const spool = open()
    expect(spool.salvage).toMatchObject({ runs: [], runListRead: false })
    expect(spool.runs()).toEqual([])
    spool.close()
  })

  test.for([
    ['is no database at all', () => writeFileSync(path, 'this is not a database '.repeat(10_000))],
    ['is gone', () => {}],
  ] as const)('that %s has lost what runs are known to have had in it, and says so once they end', ([, damage]) => {
    damage()
    const [exact, unknown, ended] = keys as [RunKey, RunKey, RunKey]
    const expected = [
      { ...exact, ackedSeq: 10, lastSeq: 50, bytes: 4_000, isExact: true },
      { ...unknown, ackedSeq: 0, lastSeq: 0, bytes: 0, isExact: false },
      { ...ended, ackedSeq: 20, lastSeq: 20, bytes: 0, isExact: true },
    ]
    open({ expected }).close()
    const spool = open()
    const gapOf = (key: RunKey, server: number) => {
      const seq = (spool.stats(key)?.lastSeq ?? 0) + 1
      const line = Buffer.from(`${JSON.stringify({ seq, at: 1, kind: 'ended', data: {} })}\n`)
      const lost = { knownSeq: 0, bytes: 0 }
      spool.end(key, [{ seq, line }], { report: endReport({ eventCount: seq }), changeSet: null }, { lost })
      spool.settle(key, server)
      const rows = spool.read(key, server, 1e9).map(({ line }) => JSON.parse(String(Buffer.from(line))) as object)
      expect(rows.at(-1)).toMatchObject({ seq: server + rows.length, kind: 'ended' })
      expect(spool.ending(key)?.report.eventCount).toBe(server + rows.length)
      return rows.slice(0, -1)
    }
    expect(gapOf(exact, 30)).toMatchObject([
      { seq: 31, kind: 'gap', data: { bytes: 2_000, events: 20, reason: 'spool_damaged' } },
    ])
    expect(gapOf(unknown, 7)).toMatchObject([
      { seq: 8, kind: 'gap', data: { bytes: 1, unknown: true, reason: 'spool_damaged' } },
    ])
    expect(gapOf(ended, 20)).toEqual([])
    spool.close()
  })

  test('of which nothing is known but by the host that wrote it: its word counts', () => {
    const [key] = keys as [RunKey]
    open({ expected: [{ ...key, ackedSeq: 0, lastSeq: 0, bytes: 0, isExact: false }] }).close()
    const spool = open()
    const line = Buffer.from(`${JSON.stringify({ seq: 1, at: 1, kind: 'ended', data: {} })}\n`)
    const lost = { knownSeq: 12, bytes: 1_200, certainty: 'exact' as const }
    spool.end(key, [{ seq: 1, line }], { report: endReport({ eventCount: 1 }), changeSet: null }, { lost })
    spool.settle(key, 2)
    const [gap] = spool.read(key, 2, 1e9).map(({ line }) => JSON.parse(String(Buffer.from(line))) as { data: object })
    expect(gap?.data).toEqual({ bytes: 1_000, events: 10, reason: 'spool_damaged' })
    spool.close()
  })

  test('is not moved by a run host', () => {
    writeFileSync(path, 'this is not a database '.repeat(10_000))
    expect(() => open({ repair: false })).toThrow(SpoolDamagedError)
    expect(readFileSync(path, 'utf8')).toContain('not a database')
  })

  test('that was set aside under a run host is noticed at its next row', () => {
    fill()
    const host = open({ repair: false })
    const bytes = readFileSync(path)
    bytes.fill(0xee, 0, 100)
    copyFileSync(path, `${path}.copy`)
    writeFileSync(path, bytes)
    const daemon = open()
    expect(daemon.salvage).not.toBeNull()
    expect(() => host.append(keys[0]!, [{ seq: rowsEach + 1, line: lineOf('run_a', rowsEach + 1) }])).toThrow(
      SpoolReplacedError,
    )
    const again = open({ repair: false })
    expect(again.stats(keys[0]!)!.lastSeq).toBe(rowsEach)
    for (const spool of [host, daemon, again]) spool.close()
  })

  test.each(['', '-wal', '-shm'])('whose file spool.db%s is removed under it is noticed at the next row', (suffix) => {
    fill()
    const host = open({ repair: false })
    rmSync(`${path}${suffix}`)
    expect(() => host.append(keys[0]!, [{ seq: rowsEach + 1, line: lineOf('run_a', rowsEach + 1) }])).toThrow(
      SpoolReplacedError,
    )
    host.close()
  })

  test('whose log is cut at every frame loses only the rows after the cut', () => {
    const spool = open()
    for (let seq = 1; seq <= 20; seq++) spool.append(keys[0]!, [{ seq, line: lineOf('run_a', seq) }])
    copyFileSync(path, `${path}.saved`)
    copyFileSync(`${path}-wal`, `${path}.saved-wal`)
    spool.close()
    const size = statSync(`${path}.saved-wal`).size
    const kept = new Set<number>()
    for (let cut = 0; cut <= size; cut += 16_384 + 24) {
      rmSync(`${path}-shm`, { force: true })
      copyFileSync(`${path}.saved`, path)
      copyFileSync(`${path}.saved-wal`, `${path}-wal`)
      truncateSync(`${path}-wal`, Math.min(size, cut + 32))
      const again = open()
      const rows = again.read(keys[0]!, 0, 1e9)
      rows.forEach(({ seq, line }, i) => {
        expect(seq).toBe(i + 1)
        expect(Buffer.from(line).equals(lineOf('run_a', seq))).toBe(true)
      })
      kept.add(rows.length)
      again.append(keys[0]!, [{ seq: rows.length + 1, line: lineOf('run_a', rows.length + 1) }])
      again.close()
    }
    expect(kept.size).toBeGreaterThan(10)
    expect(kept.has(20)).toBe(true)
  })
})

describe('a spool that is damaged once more', () => {
  const [key] = keys as [RunKey]
  /** A byte of the row's text is another one: the file passes SQLite's own check. */
  function rot(seq: number): void {
    const raw = new Database(path)
    raw.prepare('update events set line = ? where id & 4294967295 = ?').run(Buffer.from('rotten\n'), seq)
    raw.close()
    loseHeader()
  }
  function loseHeader(): void {
    const bytes = readFileSync(path)
    bytes.fill(0xee, 0, 100)
    writeFileSync(path, bytes)
  }
  /** Ten rows, the last of them the ending, of which the first damage leaves three. */
  function loseOnce(): void {
    const spool = open()
    for (let seq = 1; seq <= 9; seq++) spool.append(key, [{ seq, line: lineOf('run_a', seq) }])
    const line = Buffer.from(`${JSON.stringify({ seq: 10, at: 1, kind: 'ended', data: {} })}\n`)
    spool.end(key, [{ seq: 10, line }], { report: endReport({ eventCount: 10 }), changeSet: null })
    spool.close()
    rot(4)
    openAgain({ lastSeq: 4, certainSeq: 3, hasLostRows: true })
  }
  function openAgain(stats: object): void {
    const spool = open({ world: { now: () => ++now } })
    expect(spool.salvage).not.toBeNull()
    expect(spool.stats(key)).toMatchObject(stats)
    spool.close()
  }
  let now = 1_767_225_700_000
  const kindsOf = (spool: Spool, after: number) =>
    spool.read(key, after, 1e9).map(({ seq, line }) => {
      const { kind, data } = JSON.parse(Buffer.from(line).toString()) as { kind: string; data: { events?: number } }
      return [seq, kind, data.events]
    })

  test('keeps in mind which numbers are uncertain, so that nothing is sent below what the server has', () => {
    loseOnce()
    loseHeader()
    openAgain({ lastSeq: 4, certainSeq: 3, hasLostRows: true })
    const spool = open()
    expect(spool.read(key, 0, 1e9).map(({ seq }) => seq)).toEqual([1, 2, 3])
    spool.settle(key, 10)
    spool.ack(key, 10)
    expect(kindsOf(spool, 10)).toEqual([[11, 'ended', undefined]])
    expect(spool.ending(key)?.report.eventCount).toBe(11)
    spool.close()
  })

  test.for([
    ['below what was left', 2, 1],
    ['above it', 4, 3],
  ] as const)('and loses more, %s: the widest loss counts', ([, lost, certainSeq]) => {
    loseOnce()
    rot(lost)
    openAgain({ lastSeq: certainSeq + 1, certainSeq, hasLostRows: true })
    const spool = open()
    spool.settle(key, 5)
    expect(kindsOf(spool, 5)).toEqual([
      [6, 'gap', 5],
      [7, 'ended', undefined],
    ])
    expect(spool.ending(key)?.report.eventCount).toBe(7)
    spool.close()
  })

  test('after its numbers became certain leaves them so, unless rows are lost again', () => {
    loseOnce()
    const settled = open()
    settled.settle(key, 5)
    settled.ack(key, 5)
    settled.close()
    loseHeader()
    openAgain({ lastSeq: 7, certainSeq: null, hasLostRows: true })
    rot(7)
    openAgain({ lastSeq: 7, certainSeq: 6, hasLostRows: true })
  })
})

describe('a spool that turns out wrong while the daemon holds it', () => {
  let now: number
  let opened: { why: string; salvaged: number | null }[]
  function standing(): StandingSpool {
    now = 0
    opened = []
    return new StandingSpool({
      path,
      world: { now: () => 1_767_225_600_000 + now, monotonic: () => now },
      settings: { reserveBytes: 64 * 1024 },
      isFirst: true,
      expected: () => [],
      onOpenedAnew: (why, salvage) => opened.push({ why, salvaged: salvage && salvage.runs.length }),
    })
  }
  const [key] = keys as [RunKey]
  const append = (from: number, count: number) => {
    const host = open()
    for (let seq = from; seq < from + count; seq++) host.append(key, [{ seq, line: lineOf(key.runId, seq) }])
    host.close()
  }
  /** As a page would be whose content rotted: the file passes SQLite's own check. */
  function rot(seq: number): void {
    const raw = new Database(path)
    raw.prepare('update events set line = ? where id & 4294967295 = ?').run(Buffer.from('rotten\n'), seq)
    raw.close()
  }

  test('a row that rotted: set aside in the call that meets it, which then answers what is whole', () => {
    append(1, 20)
    const daemon = standing()
    expect(daemon.read(key, 0, 1e9)).toHaveLength(20)
    rot(8)
    expect(daemon.read(key, 0, 1e9).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(opened).toEqual([{ why: 'row 8 of run_a is not what was written', salvaged: 1 }])
    expect(daemon.stats(key)?.lastSeq).toBe(7)
    daemon.close()
  })

  test('a file that is gone: another one is made, and what comes into it is read', () => {
    append(1, 3)
    const daemon = standing()
    for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
    expect(daemon.freeBytes()).toBeGreaterThan(0)
    expect(daemon.runs()).toEqual([])
    expect(opened).toHaveLength(1)
    append(1, 2)
    expect(daemon.read(key, 0, 1e9)).toHaveLength(2)
    daemon.close()
  })

  test('a file that a run host finds gone is looked for, and made anew only when it is', () => {
    append(1, 3)
    const daemon = standing()
    daemon.check()
    expect(opened).toEqual([])
    for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
    daemon.check()
    expect(opened).toHaveLength(1)
    append(1, 2)
    expect(daemon.read(key, 0, 1e9)).toHaveLength(2)
    daemon.close()
  })

  test('damage that a run host met in a file that is gone is not looked for in the one that comes', () => {
    append(1, 3)
    const daemon = standing()
    for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
    append(1, 2)
    daemon.distrust('database disk image is malformed')
    expect(opened).toMatchObject([{ salvaged: null }])
    expect(daemon.read(key, 0, 1e9)).toHaveLength(2)
    daemon.close()
  })

  test('what a run host met is believed, once', () => {
    append(1, 3)
    const daemon = standing()
    daemon.distrust('database disk image is malformed')
    daemon.distrust('database disk image is malformed')
    expect(opened).toEqual([{ why: 'database disk image is malformed', salvaged: 1 }])
    expect(daemon.read(key, 0, 1e9)).toHaveLength(3)
    daemon.close()
  })

  test('one that is wrong again at once is left alone for a while', () => {
    append(1, 20)
    const daemon = standing()
    rot(8)
    expect(daemon.read(key, 0, 1e9)).toHaveLength(7)
    rot(3)
    expect(() => daemon.read(key, 0, 1e9)).toThrow(SpoolDamagedError)
    now = 10_000
    expect(daemon.read(key, 0, 1e9)).toHaveLength(2)
    daemon.close()
  })

  test('a folder that was removed does not come back', () => {
    append(1, 3)
    const daemon = standing()
    rmSync(folder, { recursive: true })
    expect(() => daemon.freeBytes()).toThrow(SpoolUnavailableError)
    daemon.distrust('gone')
    expect(existsSync(folder)).toBe(false)
    expect(opened).toEqual([])
    daemon.close()
  })
})
