import { describe, expect, test, type TestContext } from 'vitest'
import { checkInvariants } from '../kit/invariants.ts'
import { delay, waitFor, type Program } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { printedLines, scenario, type Scenario } from '../kit/system-scenario.ts'

// A machine on which the control plane and a device are both, and which sleeps longer than a silent device keeps its run.

const sleepMs = 12_000

interface Slept {
  server: Program
  device: Program
  run: Scenario
  runId: string
  system: TestSystem
}

/** Starts a run that waits, and lets server and device sleep. */
async function slept({ onTestFinished }: TestContext, durations: Readonly<Record<string, number>>): Promise<Slept> {
  const serverEnv = Object.fromEntries(Object.entries(durations).map(([name, ms]) => [name, String(ms)]))
  const system = await TestSystem.start({ serverEnv: { ...serverEnv, SVC_SWEEP_MS: '200' } })
  onTestFinished(() => system.stop())
  const run = await scenario(system, { steps: ['lines=20', 'touch=GATES/up', 'await=GATES/end', 'lines=20'] })
  const runId = await run.start()
  await run.reached('up')
  const [server, device] = [system.server.program, run.device.program]
  for (const program of [server, device]) program.signal('SIGSTOP')
  // A program that still sleeps cannot be ended; functions given later run first.
  onTestFinished(() => [server, device].forEach((program) => program.signal('SIGCONT')))
  await delay(sleepMs)
  return { server, device, run, runId, system }
}

// At once: they mostly sleep.
describe.concurrent('a machine sleeps', () => {
  test('a run goes on when the machine wakes, although the control plane wakes first', async (context) => {
    const { server, device, run, runId, system } = await slept(context, {
      SVC_RUNNER_LOST_MS: 8_000,
      SVC_LEASE_MS: 5_000,
      SVC_HEARTBEAT_MS: 1_000,
    })
    server.signal('SIGCONT')
    await waitFor(() => server.log.includes('the machine slept'), 'a server that knows it slept')
    // Its sweeps look at the run some times before the device can say a word.
    await delay(2_000)
    expect(await run.api.run(runId)).toMatchObject({ status: 'running' })
    device.signal('SIGCONT')
    run.open('end')
    await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(40) })
  })

  test('a run is given up when the device does not wake', async (context) => {
    const { server, run, runId } = await slept(context, {
      SVC_RUNNER_LOST_MS: 2_000,
      SVC_LEASE_MS: 1_000,
      SVC_HEARTBEAT_MS: 300,
    })
    server.signal('SIGCONT')
    expect((await run.api.waitForRun(runId, 'failed')).exitReason).toBe('runner_lost')
  })
})
