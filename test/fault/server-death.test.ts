import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isDrawn, repeats } from '../kit/forms.ts'
import { checkInvariants } from '../kit/invariants.ts'
import { delay, seededRandom, waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { printedLines, scenario, stepsWhileAlone } from '../kit/system-scenario.ts'

// Fault matrix, rows 5 and 6: kill -9 of the control plane. The daemon waits a quarter of its usual time before it
// connects again. `FAULT_KILLS` sets how often row 5 kills at random points.

const kills = repeats('FAULT_KILLS', { short: 1, long: 6 })

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start({
    withProxy: true,
    deviceEnv: { SVC_RECONNECT_MIN_MS: '250', SVC_RECONNECT_MAX_MS: '1000' },
  })
})
afterAll(() => system?.stop())

describe('kill -9 of the control plane', () => {
  test('row 5: the harness works on, the device comes back, nothing is lost or expired', async () => {
    const run = await scenario(system, { steps: stepsWhileAlone })
    const runId = await run.start()
    await run.reached('half')
    const host = await run.device.hostOf(runId)
    await system.server.kill9()
    run.open('more')
    await run.reached('alone')
    await system.server.start()
    const returned = performance.now()
    await waitFor(async () => (await run.device.status()).link.state === 'connected', 'the device is back')
    expect(performance.now() - returned, 'back within').toBeLessThan(30_000)
    expect(await run.api.run(runId)).toMatchObject({ status: 'running' })
    expect((await run.device.hostOf(runId)).harness).toEqual(host.harness)
    run.open('end')
    await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(600) })
  })

  // In the short form servers die at random points in `workflows.test.ts` and `soak.test.ts`.
  if (isDrawn('FAULT_KILLS'))
    test(
      `row 5: ${kills} times at random points of the lives of three runs`,
      { timeout: 60_000 + kills * 4_000 },
      async () => {
        const random = seededRandom('row 5')
        const lines = 70 * kills
        const runs = await Promise.all([
          scenario(system, { steps: ['rate=100', `lines=${lines}`, 'write=made.txt:x'] }),
          scenario(system, { steps: ['lines=100', 'sleep=700', 'lines=100'] }),
          scenario(system, { steps: ['lines=5000'] }),
        ])
        const [long, short, loud] = await Promise.all(runs.map((run) => run.start()))
        for (let killed = 0; killed < kills; killed++) {
          await delay(random() * 900)
          await system.server.kill9()
          await system.server.start()
        }
        const outputs = [printedLines(lines), printedLines(200), printedLines(5000)]
        for (const [index, runId] of [long, short, loud].entries())
          await checkInvariants(system, runs[index]!, runId!, { exitReason: 'completed', output: outputs[index]! })
      },
    )

  // The commit is made, its answer never arrives: the proxy sees the answer, and the server is killed instead.
  test('row 6: after the commits of the claim of a run, of events and of the ending, and before their answers', async () => {
    const run = await scenario(system, { steps: ['lines=300', 'write=made.txt:x'] })
    const deathBefore = (message: string): Promise<void> => {
      const killed = Promise.withResolvers<void>()
      let isKilled = false
      system.proxy.intercept((chunk) => {
        if (isKilled) return 'drop'
        if (!chunk.includes(`"type":"${message}"`)) return 'pass'
        isKilled = true
        void system.server.kill9().then(killed.resolve)
        return 'cut'
      })
      return killed.promise
    }
    let death = deathBefore('run.start')
    const runId = await run.start()
    for (const next of ['ack', 'run.closed']) {
      await death
      system.proxy.heal()
      death = deathBefore(next)
      await system.server.start()
    }
    await death
    system.proxy.heal()
    await system.server.start()
    await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(300) })
  })
})
