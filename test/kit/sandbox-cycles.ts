import { expect } from 'vitest'
import type { EnterSandbox, IdentityOf } from './fake-runner.ts'
import { repeats } from './forms.ts'
import { waitFor } from './programs.ts'
import type { TestServer } from './server.ts'

// Runs whose sandboxes are made and die, one after another, on an engine with faults.

export const cycles = repeats('SANDBOX_CYCLES', { short: 20, long: 1_000 })
export const cyclesMs = 60_000 + cycles * 3_000

/** Some die before they are linked, some in the middle of their run, and of those that tell what is left some, too. */
export function livesOf<Place>(
  random: () => number,
  { identityOf, enter }: { identityOf: IdentityOf<Place>; enter: EnterSandbox<Place> },
): (place: Place) => Promise<number> {
  return async (place) => {
    const fate = random()
    if (fate < 0.1) return 1
    const { lost } = await identityOf(place)
    const device = await enter(place)
    if (lost !== undefined) {
      await device.disconnect()
      return fate < 0.4 ? 137 : 0
    }
    const run = await device.take()
    await run.events({ kind: 'text', data: { text: 'here' } })
    if (fate >= 0.25) await run.end()
    await device.disconnect()
    return fate < 0.25 ? 137 : 0
  }
}

/** Each run has one ending, which stays, and nothing of its sandbox is left. */
export async function checkCycles(
  server: TestServer,
  { wake, isEmpty }: { wake: () => Promise<string>; isEmpty: () => boolean },
): Promise<void> {
  const before = connections()
  const runIds: string[] = []
  const began = performance.now()
  for (let count = 0; count < cycles; count++) runIds.push(await wake())
  const rowsOf = async (table: string) => (await server.database.root(table)) as Record<string, unknown>[]
  const runsOf = async () =>
    new Map((await rowsOf('runs')).map((run) => [run['id'], [run['exit_reason'], run['ended_at']]]))
  const areOver = async () => [...(await runsOf()).values()].every(([reason]) => reason !== null)
  await waitFor(areOver, 'the end of all runs', { ms: cyclesMs, atMostMs: 1_000 })
  const ended = await runsOf()
  await waitFor(isEmpty, 'an engine with nothing left', { ms: 60_000 })
  const hasNone = async () => (await rowsOf('sandboxes')).every((row) => row['removed_at'] !== null)
  await waitFor(hasNone, 'no sandbox', { ms: 60_000 })
  expect(await runsOf()).toEqual(ended)
  expect((await rowsOf('devices')).filter((row) => row['sandbox_id'] !== null)).toEqual([])
  const told = Map.groupBy([...ended.values()], ([reason]) => String(reason))
  const counts = Object.fromEntries([...told].map(([reason, runs]) => [reason, runs.length]))
  const known = ['completed', 'dispatch_error', 'sandbox_lost']
  expect(Object.keys(counts).filter((reason) => !known.includes(reason))).toEqual([])
  expect(ended.size).toBe(cycles)
  for (const runId of runIds.slice(0, 100)) {
    const { data } = (await server.ok(`/runs/${runId}/events?limit=200`)) as { data: { seq: number; kind: string }[] }
    expect([runId, data.filter(({ kind }) => kind === 'ended').length <= 1]).toEqual([runId, true])
    expect(data.map(({ seq }) => seq)).toEqual(data.map((_, at) => at + 1))
  }
  let now = 0
  // What is kept alive for the next call is closed after some seconds.
  const areClosed = () => (now = connections()) <= before + 16
  await waitFor(areClosed, 'connections that are closed', { ms: 30_000, about: () => `${now} after ${before}` })
  const seconds = Math.round((performance.now() - began) / 1_000)
  process.stderr.write(`${cycles} cycles in ${seconds} s: ${JSON.stringify({ ...counts, before, now })}\n`)
}

/** Sockets and pipes that are open in this process. */
const connections = (): number => process.getActiveResourcesInfo().filter((kind) => /^(TCP|Pipe|TLS)/.test(kind)).length
