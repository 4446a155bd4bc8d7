import type { Run, RunDetail } from '../../shared/api/runs.ts'
import { anyOf } from '../../test/kit/faults.ts'
import { deliveredOutput, endedOnce, numberedWhole } from '../../test/kit/invariants.ts'
import { delay, randomOf, waitFor } from '../../test/kit/programs.ts'
import { openHouse, type House } from './house.ts'
import { whyUntrue, type OwnEnding } from './judge.ts'
import { Account } from './promises.ts'
import type { Proof, ProofOptions } from './report.ts'
import { Returned } from './returned.ts'
import { standInLines } from './stand-in-host.ts'

// Runs that end while link, server or daemon is away for 1 s to 24 h, by a moved clock, and how long after the return their endings are
// true. docs/guarantees.md says which parts are real here.

export interface ReturnsOptions extends ProofOptions {
  count: number
}

const devices = 10
const capacity = 10
const leastMs = 1_000
const mostMs = 24 * 3_600_000
/** By then an ending that is not there is lost. */
const patienceMs = 120_000
const pollMs = 100

const absentParts = ['link', 'wire', 'server', 'daemon'] as const
type Absent = (typeof absentParts)[number]

interface Played extends OwnEnding {
  runId: string
  lines: number
}

export async function proveReturns({ seed, count, databaseUrl, say, stopped }: ReturnsOptions): Promise<Proof> {
  const random = randomOf(seed)
  const account = new Account()
  const returned = new Returned()
  let done = 0
  const begun = performance.now()
  const house = await openHouse({ databaseUrl, devices, capacity })
  try {
    const agents = await agentsOf(house, Math.min(count, devices * capacity))
    while (done < count && !stopped.aborted) {
      const batch = agents.slice(0, count - done)
      const what = anyOf(absentParts, random)!
      // As many absences of seconds as of hours.
      const awayMs = Math.round(leastMs * (mostMs / leastMs) ** random())
      account.meets(what)
      const slowestMs = await round(house, { batch, what, awayMs, random, account, returned })
      done += batch.length
      say(
        `${done} of ${count}: ${what} was away for ${Math.round(awayMs / 1_000)} s; true after ${Math.round(slowestMs)} ms; ${account.broken.length} wrong`,
      )
    }
    return {
      isKept: account.isKept(),
      runs: done,
      seconds: (performance.now() - begun) / 1_000,
      faults: account.faults,
      rows: account.rows().filter(({ tried }) => tried > 0),
      broken: account.broken,
      absences: returned.rows(),
    }
  } finally {
    await house.close()
  }
}

/** One for each run at once: those of one agent may wait for each other. */
async function agentsOf({ api }: House, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let number = 1; number <= count; number++)
    ids.push((await api.createAgent({ name: `Returner ${number}`, harness: 'command', command: 'true' })).id)
  return ids
}

interface Round {
  batch: readonly string[]
  what: Absent
  awayMs: number
  random: () => number
  account: Account
  returned: Returned
}

async function round(house: House, { batch, what, awayMs, random, account, returned }: Round): Promise<number> {
  const { world, api, runs } = house
  const ids: string[] = []
  for (const agentId of batch) ids.push(await api.startRun(agentId))
  await waitFor(() => ids.every((runId) => runs.has(runId)), 'all runs are started', { ms: 120_000 })
  for (const runId of ids) runs.get(runId)!.print(3)
  const back = await takeAway(house, what)
  const played: Played[] = []
  for (const runId of ids) {
    const run = runs.get(runId)!
    const exitReason = random() < 0.7 ? 'completed' : 'error'
    const lines = 1 + Math.floor(random() * 5)
    run.print(lines)
    await run.end(exitReason)
    played.push({ runId, exitReason, lines: 3 + lines, endedAt: world.now() })
    runs.delete(runId)
  }
  const goneAt = world.monotonic()
  await world.pass(awayMs)
  await back()
  const silentMs = world.monotonic() - goneAt
  return judgeAll(house, { played, what, silentMs, account, returned })
}

/** Returns what brings it back. */
async function takeAway({ proxy, ...house }: House, what: Absent): Promise<() => Promise<void>> {
  if (what === 'server') {
    await house.stopServers()
    return () => house.startServers()
  }
  if (what === 'daemon') {
    await house.stopDaemons()
    return () => house.startDaemons()
  }
  if (what === 'link') proxy.cut()
  else proxy.blackHole()
  return async () => proxy.heal()
}

interface Judged {
  played: readonly Played[]
  what: Absent
  silentMs: number
  account: Account
  returned: Returned
}

async function judgeAll({ world, api }: House, { played, what, silentMs, account, returned }: Judged): Promise<number> {
  const returnedAt = world.monotonic()
  let slowestMs = 0
  const waiting = new Map(played.map((each) => [each.runId, each]))
  const seen = new Map<string, RunDetail>()
  while (waiting.size > 0 && world.monotonic() - returnedAt < patienceMs) {
    // The list says for all of them at once which are worth a question.
    const { data } = await api.call<{ data: Run[] }>('GET', `/runs?limit=${devices * capacity}`)
    for (const { id: runId } of data.filter(({ id, completedAt }) => waiting.has(id) && completedAt !== null)) {
      const run = await api.run(runId)
      const isGivenUp = run.exitReason === 'runner_lost'
      const ms = world.monotonic() - returnedAt
      if (!isGivenUp) slowestMs = ms
      returned.add(what, { silentMs, ms: isGivenUp ? null : ms })
      // One that was given up was true before anything returned.
      if (!isGivenUp) account.returned(ms)
      seen.set(runId, run)
      waiting.delete(runId)
    }
    if (waiting.size > 0) await delay(pollMs)
  }
  for (const each of played) {
    const run = seen.get(each.runId) ?? null
    for (const promise of ['events', 'ending', 'truth'] as const) account.tried(promise)
    const why = whyUntrue(each, run, { isServerAway: what === 'server', silentMs })
    if (why !== null) account.add([{ promise: 'truth', runId: each.runId, why }])
    if (run === null || run.exitReason === 'runner_lost') continue
    const events = await api.events(each.runId)
    for (const [promise, check] of [
      ['ending', () => endedOnce(events, each.exitReason)],
      ['events', () => numberedWhole(events)],
      ['events', () => deliveredOutput(events, { output: standInLines(each.lines) })],
    ] as const)
      try {
        check()
      } catch (error) {
        account.add([{ promise, runId: each.runId, why: String(error) }])
      }
  }
  return slowestMs
}
