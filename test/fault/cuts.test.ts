import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkInvariants } from '../kit/invariants.ts'
import { delay, waitFor } from '../kit/programs.ts'
import { shortDurations, TestSystem } from '../kit/system.ts'
import { printedLines, scenario, type Scenario } from '../kit/system-scenario.ts'

/** Fault matrix, rows 18, 19 and 22: what the network does between daemon and control plane. */

/** Durations of the second part are the real ones divided by this: a lease of 90 s lasts 4.5 s. */
const factor = 20
/** The time that a loaded machine needs on top; it is not divided. */
const slownessMs = 3_000

const steps = [
  'rate=200',
  'lines=200',
  'touch=GATES/up',
  'lines=600',
  'touch=GATES/alone',
  'await=GATES/end',
  'lines=50',
]
const expected = { exitReason: 'completed', output: printedLines(850) }

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

describe('with the real durations', () => {
  let system: TestSystem
  beforeAll(async () => {
    system = await TestSystem.start({ withProxy: true })
  })
  afterAll(() => system?.stop())

  test('row 18: a cut of 10 s is invisible to a user, and over 5 s after it was healed', async () => {
    const { run, runId } = await begun(system)
    system.proxy.cut()
    await delay(10_000)
    expect(await deviceOf(system)).toMatchObject({ online: true, liveness: { status: 'connected' } })
    expect(await run.api.run(runId)).toMatchObject({ status: 'running', environment: { deviceLiveness: 'connected' } })
    system.proxy.heal()
    await connected(system, 5_000)
    run.open('end')
    await checkInvariants(system, run, runId, expected)
  })

  test('row 18: a wire that stands still for some seconds breaks no connection', async () => {
    const { run, runId } = await begun(system)
    const before = system.proxy.accepted
    system.proxy.stall()
    await delay(2_000)
    system.proxy.heal()
    run.open('end')
    await checkInvariants(system, run, runId, expected)
    expect(system.proxy.accepted).toBe(before)
  })
})

describe(`with durations divided by ${factor}`, () => {
  let system: TestSystem
  beforeAll(async () => {
    system = await TestSystem.start({ ...shortDurations(factor), withProxy: true })
  })
  afterAll(() => system?.stop())

  test.each(['cut', 'blackHole'] as const)(
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

  test('row 22: a half-open socket is noticed by the daemon, and replaced, never doubled', async () => {
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
    run.open('end')
    await checkInvariants(system, run, runId, expected)
    expect(await system.server.metric('svc_links')).toBe(1)
  })

  test('row 22: a daemon that stands still is noticed by the server', async () => {
    const { run, runId } = await begun(system)
    run.device.program.signal('SIGSTOP')
    await waitFor(async () => (await system.server.metric('svc_links')) === 0, 'the link is given up', {
      ms: 45_000 / factor + slownessMs,
    })
    run.device.program.signal('SIGCONT')
    run.open('end')
    await checkInvariants(system, run, runId, expected)
  })

  test('row 30: a network that delivers every connection twice', async () => {
    const { run, runId } = await begun(system)
    system.proxy.duplicate(true)
    // The next connections come in pairs, with the same words on both.
    for (let times = 0; times < 4; times++) {
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
