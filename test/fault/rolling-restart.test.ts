import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startBalancer, type Balancer } from '../kit/balancer.ts'
import { hasPostgres, openPostgres, type PostgresDatabase } from '../kit/database.ts'
import { repeats } from '../kit/forms.ts'
import { checkInvariants } from '../kit/invariants.ts'
import { delay, waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { TestApi } from '../kit/system-api.ts'
import type { TestDevice } from '../kit/system-device.ts'
import { printedLines, scenario, type Scenario } from '../kit/system-scenario.ts'

// Two replicas behind a balancer that goes by `/readyz`, restarted one after another, while runs of one workspace print and people
// write to it. Prints how long the slowest writes took: that depends on the machine.

/** Longer than by default: the balancer, too, waits for a processor on a busy machine. */
const drainMs = 8_000
const runsOfDevice = repeats('ROLLING_RUNS', { short: 2, long: 10 })
const rounds = repeats('ROLLING_ROUNDS', { short: 1, long: 3 })
const writers = 4
/** Longer than its runs print. */
const lines = 100 + rounds * 600
const linesAtEnd = 20

let database: PostgresDatabase
let system: TestSystem
let balancer: Balancer
/** A client that comes through the balancer. */
const api = new TestApi(() => ({ url: balancer.proxy.url, token: system.server.token }))

describe.skipIf(!hasPostgres())('a rolling restart', () => {
  beforeAll(async () => {
    database = await openPostgres()
    const serverEnv = { SVC_DRAIN_MS: String(drainMs) }
    system = await TestSystem.start({ replicas: 2, databaseUrl: database.url, devices: 0, serverEnv })
    balancer = await startBalancer(system.servers)
  })
  afterAll(async () => {
    await balancer?.close()
    await system?.stop()
    await database.close()
  })

  test('refuses no write, cuts no connection, and loses nothing of the runs', { timeout: 600_000 }, async () => {
    const runs: { run: Scenario; runId: string }[] = []
    for (const device of [await connectDevice(), await connectDevice()])
      for (let count = 0; count < runsOfDevice; count++) runs.push(await startRun(device))
    for (const { run } of runs) await run.reached('up')
    const writing = startWriting()
    await waitFor(() => writing.written.length >= 2 * writers, 'people write')
    for (let round = 0; round < rounds; round++)
      for (const server of system.servers) {
        const ended = server.end()
        await waitFor(() => balancer.states.get(server) === 'draining', 'the balancer learns of the drain')
        expect(await ended).toEqual({ code: 0, signal: null })
        await server.start()
        await waitFor(() => balancer.states.get(server) === 'ready', 'the balancer learns that it is back')
      }
    const written = await writing.stop()
    for (const { run } of runs) run.open('end')
    expect(
      written.filter(({ outcome }) => outcome !== '201').map(({ outcome }) => outcome),
      'what became of the writes',
    ).toEqual([])
    const output = printedLines(lines + linesAtEnd)
    for (const { run, runId } of runs) await checkInvariants(system, run, runId, { exitReason: 'completed', output })
  })
})

/** It reaches the replicas through the balancer. */
async function connectDevice(): Promise<TestDevice> {
  const device = system.makeDevice()
  await device.prepare()
  await device.enrol(system.api, balancer.proxy.url)
  await system.api.call('PATCH', `/devices/${device.identity.deviceId}`, { maxConcurrentRuns: runsOfDevice })
  await device.start()
  return device
}

async function startRun(device: TestDevice): Promise<{ run: Scenario; runId: string }> {
  const steps = ['touch=GATES/up', 'rate=20', `lines=${lines}`, 'await=GATES/end', `lines=${linesAtEnd}`]
  const run = await scenario(system, { device, api, steps })
  return { run, runId: await run.start() }
}

interface Written {
  ms: number
  outcome: string
}

/** People who write all the time, over connections that they keep: tasks, and comments on them. */
function startWriting() {
  const written: Written[] = []
  const state = { isOver: false }
  const write = async (path: string, body: unknown): Promise<unknown> => {
    const begun = performance.now()
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const answer = await api.raw('POST', path, { body, headers }).catch((error: Error) => error)
    const outcome = answer instanceof Error ? `${answer.message}: ${String(answer.cause)}` : String(answer.status)
    written.push({ ms: performance.now() - begun, outcome })
    return answer instanceof Error ? null : answer.body
  }
  const person = async () => {
    while (!state.isOver) {
      const task = (await write('/tasks', { title: `Task ${crypto.randomUUID()}`, force: true })) as {
        id?: string
      } | null
      if (task?.id !== undefined) await write(`/tasks/${task.id}/comments`, { content: 'Seen.' })
      // As fast as the machine allows they would starve what they wait for.
      await delay(50)
    }
  }
  const people = Promise.all(Array.from({ length: writers }, person))
  return {
    written,
    async stop(): Promise<readonly Written[]> {
      state.isOver = true
      await people
      const slowest = written.map(({ ms }) => Math.round(ms)).toSorted((a, b) => b - a)
      const middle = slowest[Math.floor(slowest.length / 2)]
      process.stderr.write(
        `rolling restart: ${written.length} writes, the slowest ${slowest.slice(0, 3).join(', ')} ms, half within ${middle} ms\n`,
      )
      return written
    },
  }
}
