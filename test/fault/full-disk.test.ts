import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunDetail } from '../../shared/api/runs.ts'
import { isDrawn, repeats } from '../kit/forms.ts'
import { checkInvariants, outputOf } from '../kit/invariants.ts'
import { delay, seededRandom, waitFor } from '../kit/programs.ts'
import { whyNoSmallDisk } from '../kit/small-disk.ts'
import { TestSystem } from '../kit/system.ts'
import { printedLines, scenario, type Scenario } from '../kit/system-scenario.ts'

// Fault matrix, row 43, on a file system that is really full: whatever daemon and run hosts write at that moment. The
// disk is filled to its last byte at random points; `FAULT_DISKS` sets how often.

const rounds = repeats('FAULT_DISKS', { short: 1, long: 3 })
/** A run that the full disk met before its harness was launched says so; it is not lost. */
const launchFailures = ['dispatch_error', 'harness_start_failed']

const why = whyNoSmallDisk()
if (why !== null) process.stderr.write(`NOT RUN: ${why}, so no disk was really full\n`)

describe.skipIf(why !== null)('a disk that is full to its last byte', () => {
  let system: TestSystem
  beforeAll(async () => {
    system = await TestSystem.start({
      device: { diskMegabytes: 64 },
      deviceEnv: { SVC_SPOOL_PAGES: '512', SVC_RECONNECT_MIN_MS: '100', SVC_RECONNECT_MAX_MS: '500' },
    })
  })
  afterAll(() => system?.stop())

  test('the daemon goes on, a run ends while it is full, and new ones are taken when there is room again; one that is killed and started while it is full waits for room, and takes up its run', async () => {
    const { device } = system
    const { pid } = device.program
    const [run, cancelled, later] = await Promise.all([
      scenario(system, { steps: ['lines=100', 'touch=GATES/up', 'await=GATES/on', 'lines=100'] }),
      scenario(system, { steps: ['touch=GATES/up', 'forever'] }),
      scenario(system, { steps: ['lines=100', 'touch=GATES/up', 'await=GATES/on', 'lines=100'] }),
    ])
    const [runId, cancelledId] = await Promise.all([run.start(), cancelled.start()])
    await Promise.all([run.reached('up'), cancelled.reached('up')])
    device.disk.fill()
    run.open('on')
    await cancelled.api.cancel(cancelledId)
    const output = printedLines(200)
    await checkInvariants(system, run, runId, { exitReason: 'completed', output, mayHaveGaps: true })
    await checkInvariants(system, cancelled, cancelledId, { exitReason: 'interrupted' })
    await waitFor(async () => (await device.status()).reason === 'disk_full', 'the device says that its disk is full')
    const laterId = await later.start()
    device.disk.free()
    const isWhole = async () => outputOf(await later.api.events(laterId)).output.toString() === printedLines(100)
    await waitFor(isWhole, 'all that it prints is stored', { about: () => device.log })
    expect(await device.status()).toMatchObject({ pid, accepting: true, reason: null })

    device.disk.fill()
    await device.kill9()
    device.disk.fill()
    const program = device.launch()
    await waitFor(() => device.log.includes('waiting for room') || device.isConnected(), 'the daemon is up, or waits')
    later.open('on')
    device.disk.free()
    await waitFor(() => device.isConnected(), 'the link is up', { about: () => device.log })
    expect(program.isRunning).toBe(true)
    await checkInvariants(system, later, laterId, { exitReason: 'completed', output, mayHaveGaps: true })
  })

  test('a second daemon is refused while it is full, and takes nothing from the first one', async () => {
    const { device } = system
    const first = device.program
    const reserve = join(device.stateDir, 'journal.db.reserve')
    await waitFor(() => existsSync(reserve), 'the first one has its reserve')
    device.disk.fill()
    try {
      expect(await device.launch().exit(15_000)).toEqual({ code: 78, signal: null })
      expect(device.log).toContain(`Another daemon of this device runs already (pid ${first.pid}).`)
      expect(existsSync(reserve)).toBe(true)
    } finally {
      device.disk.free()
      device.adopt(first)
    }
    expect(first.isRunning).toBe(true)
  })

  // The short form has the disk full at the moments above alone.
  if (isDrawn('FAULT_DISKS'))
    test(`${rounds} times at random points of two runs`, { timeout: 60_000 + rounds * 10_000 }, async () => {
      const { device } = system
      const { pid } = device.program
      const random = seededRandom('full disk')
      for (let round = 0; round < rounds; round++) {
        const lines = 100 + Math.floor(random() * 300)
        const runs = await Promise.all([
          scenario(system, { steps: ['rate=400', `lines=${lines}`, 'write=made.txt:x'] }),
          scenario(system, { steps: [`lines=${lines}`] }),
        ])
        const starting = [runs[0].start(), delay(random() * 300).then(() => runs[1].start())]
        await delay(random() * 700)
        device.disk.fill()
        await delay(random() * 1_000)
        device.disk.free()
        for (const [i, run] of runs.entries()) {
          const runId = await starting[i]!
          const { exitReason } = await hasEnded(run, runId)
          const about = `round ${round}: ${runId} ${exitReason}\n${device.log.slice(-4_000)}`
          expect([...launchFailures, 'completed'], about).toContain(exitReason)
          const isLaunched = exitReason === 'completed'
          await checkInvariants(system, run, runId, {
            exitReason: String(exitReason),
            starts: isLaunched ? 1 : 0,
            hasChangeSet: isLaunched && (await madeChangeSet(run, runId)),
            mayHaveGaps: true,
            ...(isLaunched && { output: printedLines(lines) }),
          })
        }
        await waitFor(async () => (await device.status()).accepting, 'the device takes runs again')
        expect((await device.status()).pid).toBe(pid)
      }
    })
})

/**
 * A change-set needs the device's disk twice: for its base, and beside the ending. Without room for it the run goes on or ends all
 * the same, and the route says why there is none.
 */
async function madeChangeSet({ api }: Scenario, runId: string): Promise<boolean> {
  try {
    await api.changeSet(runId)
    return true
  } catch (error) {
    expect(String(error)).toMatch(/diff_unavailable.*no space left|too_large.*had no room for the change-set/is)
    return false
  }
}

function hasEnded({ api, device }: Scenario, runId: string): Promise<RunDetail> {
  return waitFor(
    async () => {
      const run = await api.run(runId)
      return run.exitReason === null ? null : run
    },
    `${runId} has ended`,
    { ms: 30_000, about: () => device.log },
  )
}
