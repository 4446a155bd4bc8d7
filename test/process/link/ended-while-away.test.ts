import { afterAll, beforeAll, expect, test } from 'vitest'
import { waitFor } from '../../kit/programs.ts'
import { scenario } from '../../kit/system-scenario.ts'
import { TestSystem } from '../../kit/system.ts'

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start({})
})
afterAll(() => system?.stop())

test('a run that ends while the server is away ended then, also where the daemon was started anew meanwhile', async () => {
  const { server, device } = system
  const run = await scenario(system, { steps: ['lines=3', 'touch=GATES/up', 'await=GATES/on', 'lines=3'] })
  const runId = await run.start()
  await run.reached('up')
  await server.kill9()
  run.open('on')
  const isEnded = async () => (await device.spoolRuns()).some((each) => each.runId === runId && each.ended)
  await waitFor(isEnded, 'the run has ended on its device', { about: () => device.log })
  const seenAt = Date.now()
  await device.kill9()
  device.launch()
  await waitFor(isEnded, 'the new daemon has the run', { about: () => device.log })
  const laterBy = Date.now() - seenAt
  await server.start()
  const { startedAt, completedAt } = await run.api.waitForRun(runId, 'succeeded')
  expect(Date.parse(completedAt!)).toBeGreaterThanOrEqual(Date.parse(startedAt!))
  // It is reckoned from when the server hears of it, so the way of the message counts. That takes no part of a daemon's start.
  expect(Date.parse(completedAt!)).toBeLessThan(seenAt + laterBy / 2)
})
