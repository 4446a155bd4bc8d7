import { hostilePrograms } from '../../test/kit/hostile-programs.ts'
import { delay, waitFor } from '../../test/kit/programs.ts'
import type { Context } from './context.ts'
import { atMost, compare, quantile, type Result } from './measure.ts'
import { serverProbe } from './server-probe.ts'
import { isShort } from './sizes.ts'
import { programOf, startFlow, startSide, storeProgram, type On, type Side } from './workflow-stack.ts'

// What programs that want to hold a server do to everybody else there, and what is left of them in memory.

const megabyte = 1024 * 1024
const mostRounds = 3
/** Those that end by themselves are over at once. */
const programs = isShort ? hostilePrograms.filter(([, , ends]) => !ends.test('time')).slice(0, 3) : hostilePrograms

export async function besideHostile(context: Context, on: On): Promise<Result[]> {
  const probe = serverProbe(context, `hostile-${on.name}`)
  const side = await startSide(context, { on, name: 'hostile', nodeFlags: probe.nodeFlags })
  try {
    const names = await storeAll(side)
    const rounds = Math.min(context.rounds, mostRounds)
    const resident = async () => (await probe.residentBytes()) / megabyte
    // The first round makes what stays: threads, and the code that they run.
    const { lastedMs } = await play(side, names)
    const before = await resident()
    const asked: number[] = []
    const lag = await compare({
      name: `event loop's lag p99 beside ${names.length} hostile programs (${on.name})`,
      unit: 'ms',
      peerIs: 'idle',
      target: atMost(3),
      rounds,
      note: () => `/healthz p99 ${quantile(asked, 0.99).toFixed(1)} ms`,
      async ours() {
        await probe.lagP99()
        asked.push(...(await play(side, names)).asked)
        return [await probe.lagP99()]
      },
      async peer() {
        await probe.lagP99()
        await delay(lastedMs)
        return [await probe.lagP99()]
      },
    })
    const after = await resident()
    const memory = await compare({
      name: `server after ${rounds * names.length} hostile programs (${on.name})`,
      unit: 'MB',
      peerIs: `after ${names.length}`,
      target: atMost(1.1),
      rounds: 1,
      ours: () => Promise.resolve([after]),
      peer: () => Promise.resolve([before]),
    })
    return [lag, memory]
  } finally {
    await side.end()
  }
}

/** Stores those that the checks let pass; returns their names. */
async function storeAll({ server }: Side): Promise<string[]> {
  const names: string[] = []
  for (const [at, [, body]] of programs.entries()) {
    const name = `hostile_${at}`
    try {
      await storeProgram(server, programOf(name, body))
      names.push(name)
    } catch {
      // Refused, as it should be.
    }
  }
  return names
}

/** Starts all of them at once, and asks after the server's health until each has ended or waits. */
async function play({ server, root }: Side, names: readonly string[]): Promise<{ asked: number[]; lastedMs: number }> {
  const startedAt = performance.now()
  const over = new AbortController()
  const asked: number[] = []
  const asking = (async () => {
    while (!over.signal.aborted) {
      const at = performance.now()
      await (await fetch(new URL('/healthz', server.url))).arrayBuffer()
      asked.push(performance.now() - at)
      await delay(20)
    }
  })()
  await Promise.all(names.map((name) => startFlow(server, name)))
  const unplayed = () => root('workflow_runs').where({ status: 'running' }).whereNull('replayed_at').first('id')
  await waitFor(async () => (await unplayed()) === undefined, 'all were played', { ms: 300_000, everyMs: 100 })
  over.abort()
  await asking
  return { asked, lastedMs: performance.now() - startedAt }
}
