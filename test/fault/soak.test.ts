import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseRunEventId } from '../../shared/api/run-events.ts'
import { checkInvariants } from '../kit/invariants.ts'
import { delay, seededRandom, waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { printedLines, scenario, type Scenario } from '../kit/system-scenario.ts'

/** Fault matrix, "Soak": many short runs, three at a time, and a random fault every second. `FAULT_SOAK_S` sets how long. */

const seconds = Number(process.env['FAULT_SOAK_S'] ?? 10)

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start({
    withProxy: true,
    capacity: 3,
    deviceEnv: { SVC_RECONNECT_MIN_MS: '100', SVC_RECONNECT_MAX_MS: '1500' },
  })
})
afterAll(() => system?.stop())

test(
  `${seconds} s of faults: nothing is lost, doubled or stuck`,
  { timeout: (seconds * 4 + 120) * 1_000 },
  async () => {
    const random = seededRandom('soak')
    const agents = await Promise.all(
      [0, 1, 2].map(() => scenario(system, { steps: ['rate=150', 'lines=100', 'touch=GATES/up', 'lines=50'] })),
    )
    const started: { run: Scenario; runId: string }[] = []
    const until = performance.now() + seconds * 1_000
    let number = 0
    const work = agents.map(async (run) => {
      while (performance.now() < until) {
        const key = `soak-${number++}`
        // The control plane may be away just now; asked again, it is the same wake.
        const runId = await waitFor(() => run.api.startRun(run.agentId, 'Do it.', key), 'a run is taken')
        started.push({ run, runId })
        await waitFor(async () => (await run.api.run(runId)).completedAt !== null, `${runId} ends`, { ms: 90_000 })
      }
    })
    const killedHosts = new Set<string>()
    const faults = {
      daemon: async () => {
        await system.device.kill9()
        await delay(random() * 500)
        system.device.launch()
      },
      server: async () => {
        await system.server.kill9()
        await delay(random() * 500)
        await system.server.start()
      },
      cut: async () => {
        system.proxy.cut()
        await delay(random() * 800)
        system.proxy.heal()
      },
      host: async () => {
        const hosts = system.device.hosts()
        const host = hosts[Math.floor(random() * hosts.length)]
        if (!host) return
        try {
          process.kill(host.pid, 'SIGKILL')
          killedHosts.add(host.hostId)
        } catch {
          // It ended by itself just now.
        }
      },
    }
    while (performance.now() < until) {
      const names = ['daemon', 'server', 'cut', 'host'] as const
      await faults[names[Math.floor(random() * names.length)]!]()
      await delay(random() * 1_000)
    }
    await waitFor(async () => (await system.device.status()).link.state === 'connected', 'the device is connected')
    await Promise.all(work)

    for (const { run, runId } of started) {
      const { exitReason } = await run.api.run(runId)
      const isKilled = hostsOf(system.device.log, runId).some((hostId) => killedHosts.has(hostId))
      if (!isKilled) expect(exitReason, runId).toBe('completed')
      // A host that is killed before its harness is up leaves a run that was never started.
      const starts = isKilled ? Math.min(1, run.starts(runId)) : 1
      const { events } = await checkInvariants(system, run, runId, {
        exitReason: exitReason!,
        output: printedLines(150),
        isCutOff: exitReason !== 'completed',
        starts,
        hasChangeSet: false,
      })
      // Each offer takes a fence: a run that is offered again and again without an answer would have hundreds.
      expect(parseRunEventId(runId, events[0]!.id)?.fence, 'offers').toBeLessThan(20)
    }
    expect((await system.device.status()).runs).toEqual([])
  },
)

/**
 * The hosts that a run lost, by the log of its device: a host may be killed between being given a run and writing of itself
 * whose it is.
 */
function hostsOf(log: string, runId: string): string[] {
  return [...log.matchAll(/^\{.*"runId":"(\w+)".*"hostId":"([\w-]+)".*\}$/gm)].flatMap(([, run, host]) =>
    run === runId && host !== undefined ? [host] : [],
  )
}
