import { idFrom, type RunId } from '../../../shared/lib/ids.ts'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { EventWriter } from '../../../device-manager/run-host/output/writer.ts'
import { writerLimits } from '../../../device-manager/run-host/output/writer-options.ts'
import { openSpool } from '../../../device-manager/spool/spool.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { askedCallFixture } from '../../kit/asked-call.ts'
import { endReport } from '../../kit/end-report.ts'

function spoolPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-must-keep-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'spool.db')
}

test('of a batch that is larger than the room of the spool the rows that fit are written', async () => {
  const path = spoolPath()
  const room = { reserveBytes: 64 * 1024, maxPageCount: 128 }
  const spool = openSpool(path, room)
  const key = { runId: idFrom<RunId>('run_batch'), fence: 1 }
  const refused: unknown[] = []
  const writer = new EventWriter({
    world: realWorld,
    key,
    spool,
    openSpool: () => openSpool(path, room),
    log: (event, fields) => void (event === 'spool_write_failed' && refused.push(fields)),
    onSpooled: () => {},
    onBroken: () => {},
    onDamaged: () => {},
    onGone: () => {},
    limits: writerLimits,
  })
  onTestFinished(() => writer.close())
  const free = spool.freeBytes()!
  const bytes = 40_000
  const rows = Math.ceil((1.5 * free) / bytes)
  writer.emit(
    Array.from({ length: rows }, () => ({
      kind: 'raw' as const,
      data: { text: 'x'.repeat(bytes), stream: 'pty' as const },
    })),
  )
  await new Promise((resolve) => setImmediate(resolve))
  expect(refused).toHaveLength(1)
  expect(spool.freeBytes()).toBeLessThan(2 * bytes)
  const before = spool.stats(key)!.lastSeq
  expect(before).toBeGreaterThan(rows / 2)
  // With the room that an acknowledgement gives the rest comes, each row once.
  spool.ack(key, before)
  await expect.poll(() => spool.stats(key)!.lastSeq).toBe(rows)
})

test('a harness that floods an offline device with events that must be kept leaves room to the other runs', async () => {
  const path = spoolPath()
  const spool = openSpool(path, { reserveBytes: 64 * 1024 })
  const key = { runId: idFrom<RunId>('run_flood'), fence: 1 }
  let at = 0
  const logged: string[] = []
  const limits = { unsentBytes: 200_000, essentialBytes: 100_000, heldBytes: 50_000, ringBytes: 20_000 }
  const writer = new EventWriter({
    // Each write comes so late that it is not held for a batch.
    world: { ...realWorld, monotonic: () => (at += 100) },
    key,
    spool,
    openSpool: () => openSpool(path, { reserveBytes: 64 * 1024 }),
    log: (event) => void logged.push(event),
    onSpooled: () => {},
    onBroken: () => {},
    onDamaged: () => {},
    onGone: () => {},
    limits,
  })
  const failure = { kind: 'error', data: { class: 'server', message: 'x'.repeat(1_000), willRetry: true } } as const
  for (let turn = 0; turn < 100; turn++) {
    writer.emit(Array.from({ length: 20 }, () => failure))
    await new Promise((resolve) => setImmediate(resolve))
  }
  const { toolCallId, name, ...ask } = askedCallFixture()
  writer.emit([{ kind: 'permission', data: { name, decision: 'ask', ask, ...(toolCallId && { toolCallId }) } }])
  writer.emit([{ kind: 'session', data: { sessionId: 'the-last' } }])
  await new Promise((resolve) => setImmediate(resolve))
  const bound = limits.unsentBytes + limits.essentialBytes + 2 * limits.heldBytes
  expect(spool.stats(key)!.pendingBytes).toBeLessThan(bound)
  expect(logged.filter((event) => event === 'events_dropping')).toHaveLength(1)
  const report = await writer.finish(
    { kind: 'ended', data: { exitReason: 'completed', exitCode: 0, signal: null } },
    null,
    (totals) => ({ ...endReport(), ...totals, toolCallCount: 0 }),
  )
  expect(report).toMatchObject({ sessionId: 'the-last', approvals: [{ inputDigest: ask.inputDigest }] })
  expect(report?.gapBytes).toBeGreaterThan(1_000_000)
  const again = openSpool(path, { reserveBytes: 64 * 1024 })
  expect(again.stats(key)!.pendingBytes).toBeLessThan(bound + limits.ringBytes)
  again.close()
  writer.close()
})

test('of damaged spools that were set aside the last two stay, with what belongs to them', () => {
  const path = spoolPath()
  const aside = () =>
    readdirSync(join(path, '..'))
      .filter((name) => name.includes('.corrupt-'))
      .toSorted()
  for (let day = 1; day <= 4; day++) {
    writeFileSync(path, `no database ${day}`)
    if (day === 1) writeFileSync(`${path}-wal`, 'no log')
    openSpool(path, { reserveBytes: 64 * 1024, world: { ...realWorld, now: () => Date.UTC(2026, 0, day) } }).close()
  }
  expect(aside()).toEqual(['spool.db.corrupt-2026-01-03T00-00-00-000Z', 'spool.db.corrupt-2026-01-04T00-00-00-000Z'])
})
