import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { repeats } from '../kit/forms.ts'
import { checkInvariants } from '../kit/invariants.ts'
import { seededRandom, delay } from '../kit/programs.ts'
import { ApiFailure } from '../kit/system-api.ts'
import { TestSystem } from '../kit/system.ts'
import { printedLines, scenario } from '../kit/system-scenario.ts'

/**
 * Fault matrix, row 40: a cancel at every point of a run's life gives exactly one ending. `FAULT_CANCELS` sets how many of
 * them are drawn from its spawn.
 */
const rounds = repeats('FAULT_CANCELS', { short: 1, long: 12 })

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start({ withProxy: true, devices: 0, device: { isWalled: true } })
  await system.makeDevice().enrol(system.api, system.proxy.url)
})
afterAll(() => system?.stop())

const interrupted = { exitReason: 'interrupted' }

test('row 40: a cancel before the start, with no device there: ended at once, nothing is ever started', async () => {
  const run = await scenario(system, { steps: ['lines=10'] })
  const runId = await run.start()
  expect(await run.api.run(runId)).toMatchObject({ status: 'queued' })
  expect(await run.api.cancel(runId, 'not now')).toMatchObject({ status: 'cancelled', exitReason: 'interrupted' })
  await system.device.start()
  const ended = await run.api.waitForRun(runId, 'cancelled')
  expect(ended).toMatchObject({ errorMessage: 'not now', startedAt: null })
  expect(run.starts()).toBe(0)
  expect((await system.device.status()).runs).toEqual([])
})

describe('row 40: a cancel', () => {
  beforeAll(async () => {
    if (!system.devices.some((device) => device.isRunning)) await system.device.start()
  })

  test('while the offer is on its way: the device gives it up', async () => {
    const run = await scenario(system, { steps: ['lines=10'] })
    system.proxy.delayMs(300)
    const runId = await run.start()
    await delay(100)
    await run.api.cancel(runId)
    system.proxy.heal()
    const ended = await run.api.waitForRun(runId, 'cancelled')
    expect(ended.exitReason).toBe('interrupted')
    expect(run.starts()).toBe(0)
  })

  test('at random points of the spawn: one ending, at most one start, and a device with nothing left', async () => {
    const random = seededRandom('row 40')
    for (let round = 0; round < rounds; round++) {
      const run = await scenario(system, { steps: ['lines=20', 'forever'] })
      const runId = await run.start()
      await delay(random() * 150)
      await run.api.cancel(runId)
      await run.api.waitForRun(runId, 'cancelled')
      const starts = run.starts()
      expect(starts).toBeLessThanOrEqual(1)
      const { events } = await endedOnce(runId)
      if (events > 0) await checkInvariants(system, run, runId, { ...interrupted, starts })
      expect((await system.device.status()).runs.map((each) => each.runId)).not.toContain(runId)
    }
  })

  test('in mid-run, twice, of a harness that ignores it: the second changes nothing, it escalates, and ends as `interrupted` all the same; after the end it is refused, and the run stays as it ended', async () => {
    const run = await scenario(system, { steps: ['ignore=SIGINT', 'lines=100', 'touch=GATES/up', 'forever'] })
    const runId = await run.start()
    await run.reached('up')
    const [first, second] = await Promise.allSettled([run.api.cancel(runId, 'once'), run.api.cancel(runId, 'twice')])
    expect([first.status, second.status]).toContain('fulfilled')
    const { run: ended, output } = await checkInvariants(system, run, runId, interrupted)
    expect(output.toString()).toBe(`${printedLines(100)}ignored SIGINT\r\n`)
    expect(['once', 'twice']).toContain(ended.errorMessage)
    await expect(run.api.cancel(runId)).rejects.toThrow(ApiFailure)
    expect(await run.api.run(runId)).toEqual(ended)
    await checkInvariants(system, run, runId, interrupted)
  })
})

/** A run may be cancelled before there is anything to tell of it; else its log has its one ending. */
async function endedOnce(runId: string): Promise<{ events: number }> {
  const events = await system.api.events(runId)
  expect(events.filter(({ kind }) => kind === 'ended').length).toBe(events.length > 0 ? 1 : 0)
  return { events: events.length }
}
