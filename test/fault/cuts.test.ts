import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isLong } from '../kit/forms.ts'
import { checkInvariants } from '../kit/invariants.ts'
import { delay, waitFor } from '../kit/programs.ts'
import { shortDurations, TestSystem } from '../kit/system.ts'
import { printedLines, scenario, type Scenario } from '../kit/system-scenario.ts'

// Fault matrix, rows 18, 19 and 22: what the network does between daemon and control plane.

/** Durations are, but for row 18 in the long form, the real ones divided by this: a lease of 90 s lasts 4.5 s. */
const factor = 20
/** The time that a loaded machine needs on top; it is not divided. */
const slownessMs = 3_000

/** It goes on printing while the network fails. */
const steps = ['rate=50', 'lines=20', 'touch=GATES/up', 'lines=80', 'touch=GATES/alone', 'await=GATES/end', 'lines=20']
const expected = { exitReason: 'completed', output: printedLines(120) }

async function begun(system: TestSystem): Promise<{ run: Scenario; runId: string }> {
  const run = await scenario(system, { steps })
  const runId = await run.start()
  await run.reached('up')
  return { run, runId }
}

function connected(system: TestSystem, ms: number): Promise<unknown> {
  return waitFor(async () => (await system.device.status()).link.state === 'connected', `connected within ${ms} ms`, {
    ms,
  })
}

async function deviceOf(system: TestSystem) {
  const [device] = await system.api.devices()
  return device!
}

interface Row18 {
  cutMs: number
  /** In which the device must be back. */
  backMs: number
  stallMs: number
}

const row18 =
  'row 18: a cut is invisible to a user, and soon over after it was healed; a wire that stands still breaks nothing'
async function isInvisible(system: TestSystem, { cutMs, backMs, stallMs }: Row18): Promise<void> {
  const { run, runId } = await begun(system)
  system.proxy.cut()
  await delay(cutMs)
  expect(await deviceOf(system)).toMatchObject({ online: true, liveness: { status: 'connected' } })
  expect(await run.api.run(runId)).toMatchObject({ status: 'running', environment: { deviceLiveness: 'connected' } })
  await run.reached('alone')
  system.proxy.heal()
  await connected(system, backMs)

  const before = system.proxy.accepted
  system.proxy.stall()
  run.open('end')
  await delay(stallMs)
  system.proxy.heal()
  await checkInvariants(system, run, runId, expected)
  expect(system.proxy.accepted).toBe(before)
}

// The short form has all rows with divided durations.
if (isLong)
  describe('with the real durations', () => {
    let system: TestSystem
    beforeAll(async () => {
      system = await TestSystem.start({ withProxy: true })
    })
    afterAll(() => system?.stop())

    test(row18, () => isInvisible(system, { cutMs: 10_000, backMs: 5_000, stallMs: 2_000 }))
  })

describe(`with durations divided by ${factor}`, () => {
  let system: TestSystem
  beforeAll(async () => {
    system = await TestSystem.start({ ...shortDurations(factor), withProxy: true })
  })
  afterAll(() => system?.stop())

  if (!isLong)
    // A wire counts as dead after 45 s, of which 15 s may have gone by before it stands still: the rest is for a busy machine.
    test(row18, () =>
      isInvisible(system, { cutMs: 10_000 / factor, backMs: 5_000 / factor + slownessMs, stallMs: 10_000 / factor }),
    )

  // A cut is what row 18 shows; one of which neither side is told is the harder one.
  test.each(isLong ? (['cut', 'blackHole'] as const) : (['blackHole'] as const))(
    'row 19: 100 s of %s: disconnected after 90 s, no run failed, same fence after',
    async (fault) => {
      const { run, runId } = await begun(system)
      const host = await run.device.hostOf(runId)
      system.proxy[fault]()
      const faultyAt = performance.now()
      await waitFor(async () => !(await deviceOf(system)).online, 'the device counts as disconnected', {
        ms: 90_000 / factor + slownessMs,
      })
      expect(await run.api.run(runId)).toMatchObject({
        status: 'running',
        environment: { deviceLiveness: 'disconnected' },
      })
      await delay(Math.max(0, 100_000 / factor - (performance.now() - faultyAt)))
      await run.reached('alone')
      system.proxy.heal()
      await connected(system, 15_000 / factor + slownessMs)
      await waitFor(async () => (await deviceOf(system)).online, 'the device counts as connected', { ms: slownessMs })
      expect(await run.device.hostOf(runId)).toMatchObject({ pid: host.pid, fence: host.fence })
      run.open('end')
      await checkInvariants(system, run, runId, expected)
    },
  )

  test('rows 22 and 30: a half-open socket is noticed by the daemon, and replaced, never doubled; one that stands still, by the server; and a network that delivers every connection twice', async () => {
    const { run, runId } = await begun(system)
    const { since } = (await run.device.status()).link
    let most = 0
    system.proxy.halfOpen()
    await waitFor(
      async () => {
        most = Math.max(most, await system.server.metric('svc_links'))
        const { link } = await run.device.status()
        return link.state === 'connected' && link.since !== since
      },
      'the daemon has a new link',
      { ms: 45_000 / factor + slownessMs },
    )
    expect(most, 'links of the one device').toBe(1)
    expect(await system.server.metric('svc_links')).toBe(1)

    run.device.program.signal('SIGSTOP')
    await waitFor(async () => (await system.server.metric('svc_links')) === 0, 'the link is given up', {
      ms: 45_000 / factor + slownessMs,
    })
    run.device.program.signal('SIGCONT')
    await waitFor(async () => (await system.server.metric('svc_links')) === 1, 'there is one link')

    system.proxy.duplicate(true)
    // The next connections come in pairs, with the same words on both.
    for (let times = 0; times < (isLong ? 4 : 2); times++) {
      system.proxy.halfOpen()
      const { accepted } = system.proxy
      await waitFor(() => system.proxy.accepted > accepted, 'the daemon connects', { ms: 45_000 / factor + slownessMs })
    }
    system.proxy.heal()
    await connected(system, 15_000 / factor + slownessMs)
    run.open('end')
    await checkInvariants(system, run, runId, expected)
    await waitFor(async () => (await system.server.metric('svc_links')) === 1, 'there is one link')
  })
})
