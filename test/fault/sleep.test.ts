import { expect, onTestFinished, test } from 'vitest'
import { checkInvariants } from '../kit/invariants.ts'
import { delay } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { printedLines, scenario } from '../kit/system-scenario.ts'

/** A machine on which the control plane and a device are both, and which sleeps longer than a silent device keeps its run. */

const runnerLostMs = 8_000
const sleepMs = 12_000

test('a run goes on when the machine wakes, although the control plane wakes first', async () => {
  const system = await TestSystem.start({
    serverEnv: {
      SVC_RUNNER_LOST_MS: String(runnerLostMs),
      SVC_LEASE_MS: '5000',
      SVC_HEARTBEAT_MS: '1000',
      SVC_SWEEP_MS: '200',
    },
  })
  onTestFinished(() => system.stop())
  const run = await scenario(system, { steps: ['lines=20', 'touch=GATES/up', 'await=GATES/end', 'lines=20'] })
  const runId = await run.start()
  await run.reached('up')
  const programs = [system.server.program, run.device.program]
  for (const program of programs) program.signal('SIGSTOP')
  await delay(sleepMs)
  system.server.program.signal('SIGCONT')
  // Its sweeps look at the run some times before the device can say a word.
  await delay(2_000)
  expect(await run.api.run(runId)).toMatchObject({ status: 'running' })
  run.device.program.signal('SIGCONT')
  run.open('end')
  await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(40) })
})

test('a run is given up when the device does not wake', async () => {
  const system = await TestSystem.start({
    serverEnv: { SVC_RUNNER_LOST_MS: '2000', SVC_LEASE_MS: '1000', SVC_HEARTBEAT_MS: '300', SVC_SWEEP_MS: '200' },
  })
  onTestFinished(() => system.stop())
  const run = await scenario(system, { steps: ['touch=GATES/up', 'await=GATES/end'] })
  const runId = await run.start()
  await run.reached('up')
  const programs = [system.server.program, run.device.program]
  for (const program of programs) program.signal('SIGSTOP')
  await delay(sleepMs)
  system.server.program.signal('SIGCONT')
  expect((await run.api.waitForRun(runId, 'failed')).exitReason).toBe('runner_lost')
  run.device.program.signal('SIGCONT')
})
