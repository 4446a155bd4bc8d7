import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RunEvent } from '../../shared/api/run-events.ts'
import { isLong } from '../kit/forms.ts'
import { checkInvariants, outputOf } from '../kit/invariants.ts'
import { waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { printedLines, scenario, type Scenario } from '../kit/system-scenario.ts'

// Fault matrix, row 44: what a damaged spool lost is declared, and the ending comes after all that the server has.

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start({
    withProxy: true,
    deviceEnv: { SVC_RECONNECT_MIN_MS: '100', SVC_RECONNECT_MAX_MS: '500' },
  })
})
afterAll(() => system?.stop())

const steps = [
  'lines=200',
  'touch=GATES/up',
  'await=GATES/more',
  'rate=400',
  'lines=200',
  'touch=GATES/alone',
  'await=GATES/end',
  'lines=10',
  'forever',
]

async function begun(): Promise<{ run: Scenario; runId: string }> {
  const run = await scenario(system, { steps })
  const runId = await run.start()
  await run.reached('up')
  await isStored(runId, printedLines(200))
  return { run, runId }
}

function isStored(runId: string, output: string): Promise<unknown> {
  return waitFor(async () => outputOf(await system.api.events(runId)).output.length === output.length, 'it is stored')
}

/** Daemon and run host die (the host may have left already), and the spool is what `change` makes of it. */
async function dieAnd(run: Scenario, runId: string, change: (path: string) => void): Promise<void> {
  const host = run.device.hosts().find((each) => each.runId === runId)
  await run.device.kill9()
  if (host) process.kill(host.pid, 'SIGKILL')
  change(join(run.device.stateDir, 'spool.db'))
  await run.device.start()
}

const removed = (path: string) => {
  for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
}
/** Of which nothing can be read. */
const garbage = (path: string) => {
  removed(path)
  writeFileSync(path, 'this is not a database '.repeat(10_000))
}
const gapsOf = (events: readonly RunEvent[]) => events.filter(({ kind }) => kind === 'gap').map(({ data }) => data)
const crashed = { exitReason: 'crashed', mayHaveGaps: true }

test('a row that rotted before it was sent: the run ends, and says how many events are lost and what they took', async () => {
  const { run, runId } = await begun()
  system.proxy.cut()
  run.open('more')
  await run.reached('alone')
  const spool = new Database(join(run.device.stateDir, 'spool.db'))
  const rows = spool.prepare<[], { id: bigint }>('select id from events order by id').safeIntegers().all()
  expect(rows.length).toBeGreaterThan(20)
  spool.prepare('update events set line = ? where id = ?').run(Buffer.from('rotten\n'), rows[10]!.id)
  spool.close()
  system.proxy.heal()
  await waitFor(() => run.device.log.includes('the spool was opened anew'), 'the damage is found')
  run.open('end')
  const { events, gapBytes } = await checkInvariants(system, run, runId, crashed)
  const gaps = events.filter(({ kind }) => kind === 'gap')
  expect(gaps.map(({ data }) => data['reason'])).toEqual(['spool_damaged'])
  // All from the row that rotted on.
  expect(gaps[0]!.data['events']).toBeGreaterThanOrEqual(rows.length - 10)
  expect(gapBytes).toBeGreaterThan(1_000)
  expect(outputOf(events).output.toString().startsWith(printedLines(200))).toBe(true)
})

// In the short form a spool without the last rows shows that, and `full-spool.test.ts` one that vanishes.
if (isLong)
  test('a spool that is gone with host and daemon: the ending comes after what the server has', async () => {
    const { run, runId } = await begun()
    await dieAnd(run, runId, removed)
    const { events } = await checkInvariants(system, run, runId, crashed)
    expect(outputOf(events).output.toString()).toBe(printedLines(200))
  })

test('a spool of which nothing can be read, with host and daemon: the run says that events are lost, though nobody knows how many', async () => {
  const { run, runId } = await begun()
  system.proxy.cut()
  run.open('more')
  await run.reached('alone')
  await dieAndOffline(run, runId, garbage)
  const { events } = await checkInvariants(system, run, runId, crashed)
  expect(gapsOf(events)).toEqual([{ bytes: 1, reason: 'spool_damaged', unknown: true }])
  expect(outputOf(events).output.toString().startsWith(printedLines(200))).toBe(true)
})

test('a spool of which nothing can be read, after a run had ended away from the server: it says how many events are lost', async () => {
  const run = await scenario(system, { steps: ['lines=200', 'touch=GATES/up', 'await=GATES/more', 'lines=300'] })
  const runId = await run.start()
  await run.reached('up')
  await isStored(runId, printedLines(200))
  system.proxy.cut()
  run.open('more')
  const ended = await waitFor(async () => {
    const { runs } = await run.device.status()
    if (runs.some((each) => each.runId === runId && each.state !== 'ended')) return null
    return (await run.device.spoolRuns()).find((each) => each.runId === runId && each.ended) ?? null
  }, 'it has ended')
  await dieAndOffline(run, runId, garbage)
  // What changed was lost with the events.
  const { events, gapBytes } = await checkInvariants(system, run, runId, { ...crashed, hasChangeSet: false })
  const before = events.findIndex(({ kind }) => kind === 'gap')
  // The event of the ending is told anew.
  expect(gapsOf(events)).toMatchObject([{ reason: 'spool_damaged', events: ended.lastSeq - 1 - before }])
  expect(gapBytes).toBeGreaterThan(10_000)
})

/** The same while the server is out of reach. */
async function dieAndOffline(run: Scenario, runId: string, change: (path: string) => void): Promise<void> {
  await dieAnd(run, runId, (path) => {
    change(path)
    system.proxy.heal()
  })
}

test('a spool whose last rows are gone, as when its log is cut: the ending comes after what the server has', async () => {
  const { run, runId } = await begun()
  const early = join(system.root, 'early.db')
  const spool = new Database(join(run.device.stateDir, 'spool.db'))
  spool.prepare('vacuum into ?').run(early)
  spool.close()
  run.open('more')
  await run.reached('alone')
  await isStored(runId, printedLines(400))
  await dieAnd(run, runId, (path) => {
    removed(path)
    new Database(early).prepare('vacuum into ?').run(path)
  })
  const { events } = await checkInvariants(system, run, runId, crashed)
  expect(outputOf(events).output.toString()).toBe(printedLines(400))
})
