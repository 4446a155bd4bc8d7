import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkInvariants, rssOf } from '../kit/invariants.ts'
import { waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { printedLines, scenario } from '../kit/system-scenario.ts'

// Fault matrix, rows 43 and 44: a spool of 2 MiB (128 pages) that runs full while the wire is cut, and one that is gone.

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start({
    withProxy: true,
    deviceEnv: { SVC_SPOOL_PAGES: '128', SVC_RECONNECT_MIN_MS: '100', SVC_RECONNECT_MAX_MS: '500' },
  })
})
afterAll(() => system?.stop())

test('row 43: the harness is read on, loss is declared, no new run is taken, and it recovers without a restart', async () => {
  const [lines, size] = [7_500, 1_024]
  const [full, next] = await Promise.all([
    scenario(system, {
      steps: [
        `size=${size}`,
        'lines=100',
        'touch=GATES/up',
        'await=GATES/flood',
        `lines=${lines}`,
        'touch=GATES/flooded',
        'await=GATES/end',
        'lines=100',
      ],
    }),
    scenario(system, { steps: ['lines=50'] }),
  ])
  const { device } = system
  const runId = await full.start()
  await full.reached('up')
  const { pid } = device.program
  system.proxy.cut()
  full.open('flood')
  // Eight megabytes go through a spool of two: the harness is not held up.
  await full.reached('flooded')
  await waitFor(async () => (await device.status()).reason === 'disk_full', 'the device says that it is full')
  const nextId = await next.start()
  expect(rssOf(pid)).toBeLessThan(200 * 1024 * 1024)

  // It ends while nothing can be sent: what is reserved for endings takes its own.
  full.open('end')
  await waitFor(
    async () => (await device.spoolRuns()).some((run) => run.runId === runId && run.ended),
    'the ending is spooled',
  )
  expect((await device.status()).accepting).toBe(false)
  expect(next.starts()).toBe(0)
  system.proxy.heal()

  const output = printedLines(lines + 200, { size })
  const { gapBytes } = await checkInvariants(system, full, runId, {
    exitReason: 'completed',
    output,
    mayHaveGaps: true,
  })
  expect(gapBytes).toBeGreaterThan(0)
  await checkInvariants(system, next, nextId, { exitReason: 'completed', output: printedLines(50) })
  expect(await device.status()).toMatchObject({ pid, accepting: true, reason: null })
})

test('row 44: a spool that vanishes under a run ends that run as `crashed`, and the daemon goes on with a new one', async () => {
  const [broken, next] = await Promise.all([
    scenario(system, { steps: ['lines=10', 'touch=GATES/up', 'await=GATES/on', 'lines=10', 'forever'] }),
    scenario(system, { steps: ['lines=50'] }),
  ])
  const { device } = system
  const { pid } = device.program
  const runId = await broken.start()
  await broken.reached('up')
  const spoolFile = (suffix = '') => join(device.stateDir, `spool.db${suffix}`)
  rmSync(spoolFile())
  // As `rm spool.db*` does when the daemon makes the file anew in its midst: the log of the new one goes, too.
  // Where nothing is written just then, the daemon looks at its file when it is asked how it is.
  await waitFor(async () => (await device.status()) && existsSync(spoolFile()), 'a new spool')
  for (const suffix of ['-wal', '-shm']) rmSync(spoolFile(suffix), { force: true })
  broken.open('on')
  const run = await system.api.waitForRun(runId, 'failed')
  expect(run.exitReason).toBe('crashed')
  const nextId = await next.start()
  await checkInvariants(system, next, nextId, { exitReason: 'completed', output: printedLines(50) })
  expect(await device.status()).toMatchObject({ pid, accepting: true, runs: [] })
})
