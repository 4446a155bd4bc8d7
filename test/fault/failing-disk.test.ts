import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { failWrites, whyNoFailingDisk } from '../kit/failing-disk.ts'
import { checkInvariants } from '../kit/invariants.ts'
import { waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { printedLines, scenario, stepsWhileAlone } from '../kit/system-scenario.ts'

// Fault matrix, row 46: a disk that answers each write with an input/output error, and then works again.

const why = whyNoFailingDisk()
if (why !== null) process.stderr.write(`NOT RUN: ${why}, so no disk ever failed\n`)

describe.skipIf(why !== null)('a disk that fails', () => {
  let system: TestSystem
  beforeAll(async () => {
    system = await TestSystem.start()
  })
  afterAll(() => system?.stop())

  const files = (...names: string[]) =>
    names.flatMap((name) => ['', '-wal'].map((suffix) => join(system.device.stateDir, `${name}${suffix}`)))

  test('under the daemon: its runs end, new ones wait, and it goes on by itself', async () => {
    const { device } = system
    const { pid } = device.program
    const [run, cancelled, later] = await Promise.all([
      scenario(system, { steps: ['lines=100', 'touch=GATES/up', 'await=GATES/on', 'lines=100'] }),
      scenario(system, { steps: ['touch=GATES/up', 'forever'] }),
      scenario(system, { steps: ['lines=50'] }),
    ])
    const [runId, cancelledId] = await Promise.all([run.start(), cancelled.start()])
    await Promise.all([run.reached('up'), cancelled.reached('up')])
    const mend = await failWrites(pid, files('journal.db', 'spool.db'))
    run.open('on')
    await cancelled.api.cancel(cancelledId)
    await system.api.waitForRun(runId, 'succeeded')
    await system.api.waitForRun(cancelledId, 'cancelled')
    await waitFor(async () => (await device.status()).reason === 'spool_unavailable', 'the device takes no runs')
    const laterId = await later.start()
    expect(later.starts()).toBe(0)
    await mend()
    await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(200) })
    await checkInvariants(system, cancelled, cancelledId, { exitReason: 'interrupted' })
    await checkInvariants(system, later, laterId, { exitReason: 'completed', output: printedLines(50) })
    expect(await device.status()).toMatchObject({ pid, accepting: true, reason: null, runs: [] })
  })

  test('under a daemon without runs, and then under a run host: an offer is refused, not again and again, and taken afterwards; what the harness prints meanwhile is stored afterwards', async () => {
    const { device } = system
    await waitFor(async () => (await device.status()).runs.length === 0, 'no run is there')
    const run = await scenario(system, { steps: stepsWhileAlone })
    const mendJournal = await failWrites(device.program.pid, files('journal.db'))
    const runId = await run.start()
    await waitFor(async () => (await device.status()).reason === 'spool_unavailable', 'the device takes no runs')
    await mendJournal()
    await run.reached('half')
    // Each offer has a fence of its own.
    expect((await device.status()).runs.map(({ fence }) => fence < 5)).toEqual([true])

    const host = await device.hostOf(runId)
    const mendSpool = await failWrites(host.pid, files('spool.db'))
    run.open('more')
    await run.reached('alone')
    await waitFor(() => device.log.includes('spool_write_failed'), 'a write failed', { about: () => device.log })
    await mendSpool()
    run.open('end')
    await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(600) })
  })
})
