import { idFrom } from '../../shared/lib/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseRunEventId } from '../../shared/api/run-events.ts'
import { openPostgres, type PostgresDatabase } from '../kit/database.ts'
import { anyOf, faultsOf } from '../kit/faults.ts'
import { repeats } from '../kit/forms.ts'
import { checkInvariants } from '../kit/invariants.ts'
import { KilledHosts } from '../kit/killed-hosts.ts'
import { delay, seededRandom, waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { printedLines, scenario, type Scenario } from '../kit/system-scenario.ts'

// Fault matrix, "Soak": many short runs, three at a time, and a random fault every second.
// `FAULT_SOAK_S` sets how long, `FAULT_SOAK_REPLICAS` how many replicas there are, on PostgreSQL; without it there is one, on
// SQLite.

const seconds = repeats('FAULT_SOAK_S', { short: 10, long: 10 })
const replicas = Number(process.env['FAULT_SOAK_REPLICAS'] ?? 0)

let system: TestSystem
let database: PostgresDatabase | null = null
beforeAll(async () => {
  if (replicas > 0) database = await openPostgres()
  system = await TestSystem.start({
    ...(database && { databaseUrl: database.url, replicas }),
    withProxy: true,
    capacity: 3,
    deviceEnv: { SVC_RECONNECT_MIN_MS: '100', SVC_RECONNECT_MAX_MS: '1500' },
  })
})
afterAll(async () => {
  await system?.stop()
  await database?.close()
})

test(
  `${seconds} s of faults: nothing is lost, doubled or stuck`,
  { timeout: (seconds * 4 + 120) * 1_000 },
  async () => {
    const random = seededRandom('soak')
    const agents = await Promise.all(
      Array.from({ length: 3 }, () =>
        scenario(system, { steps: ['rate=150', 'lines=100', 'touch=GATES/up', 'lines=50'] }),
      ),
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
    const killed = new KilledHosts()
    const all = faultsOf({ system, random, killed, longestMs: { death: 500, cut: 800, sleep: 0 } })
    const faults = [all.daemon, all.server, all.reroute, all.cut, all.host]
    while (performance.now() < until) {
      await anyOf(faults, random)!()
      await delay(random() * 1_000)
    }
    await waitFor(async () => (await system.device.status()).link.state === 'connected', 'the device is connected')
    await Promise.all(work)

    killed.read(system.device.log)
    for (const { run, runId } of started) {
      const { exitReason, createdAt, completedAt } = await run.api.run(runId)
      const isKilled =
        killed.had(runId) ||
        (exitReason === 'crashed' && killed.mayHaveHad({ from: Date.parse(createdAt), to: Date.parse(completedAt!) }))
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
      expect(parseRunEventId(idFrom(runId), events[0]!.id)?.fence, 'offers').toBeLessThan(20)
    }
    expect((await system.device.status()).runs).toEqual([])
    process.stderr.write(`soak: ${started.length} runs, ${killed.size} hosts killed\n`)
  },
)
