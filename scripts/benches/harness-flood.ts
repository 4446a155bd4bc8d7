import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openSpool } from '../../device-manager/spool/spool.ts'
import { delay, waitFor } from '../../test/kit/programs.ts'
import type { Bench } from './context.ts'
import { atMost, compare, type Comparison } from './measure.ts'
import { fileCame, memoryOf, pidOfRunHost, startStandInStack, type StandInStack } from './stand-in.ts'
import { size } from './sizes.ts'

const thousand = size(1_000, 20)
/** So many events at a time are printed as fast as they are read; then all of them must have reached the server. */
const pauseAt = 10 * thousand
const watched = [50 * thousand, 100 * thousand, 200 * thousand] as const
const settleMs = 3_000

/** One run of 200,000 events. Resident memory of its host and of the daemon, each time after what came before is stored. */
export const harnessFlood: Bench = {
  name: 'harness-flood',
  about: 'resident memory after 200,000 events of one run, against that after 50,000',
  async run(context) {
    if (process.platform !== 'linux') {
      context.say('NOT MEASURED: it needs Linux')
      return []
    }
    const stack = await startStandInStack(context, { name: 'flood' })
    try {
      const sizes = await flood(stack)
      for (const { events, host, daemon } of sizes)
        context.say(`after ${events} events: run host ${host.toFixed(1)} MB, daemon ${daemon.toFixed(1)} MB`)
      const common = { unit: 'MB', peerIs: 'after 50,000', target: atMost(1.1), rounds: 1 }
      const of = (who: 'host' | 'daemon', at: number) => () => Promise.resolve([sizes.at(at)?.[who] ?? Number.NaN])
      const comparisons: Comparison[] = [
        { ...common, name: 'run host after 200,000 events', ours: of('host', -1), peer: of('host', 0) },
        { ...common, name: 'daemon after 200,000 events', ours: of('daemon', -1), peer: of('daemon', 0) },
      ]
      return await Promise.all(comparisons.map(compare))
    } finally {
      await stack.end()
    }
  },
}

async function flood(stack: StandInStack): Promise<{ events: number; host: number; daemon: number }[]> {
  const agent = await stack.claudeAgent()
  const last = watched.at(-1)!
  const steps = Array.from({ length: last / pauseAt }, (_, at) => (at + 1) * pauseAt)
  const { runPublicId, at } = await stack.order(agent, { do: 'flood', steps })
  const sizes: { events: number; host: number; daemon: number }[] = []
  for (const step of steps) {
    await fileCame(`${at}.printed-${step}`)
    await allStored(stack, step)
    if (watched.some((each) => each === step)) {
      await delay(settleMs)
      const host = memoryOf(pidOfRunHost(stack.device)).rss
      sizes.push({ events: step, host, daemon: memoryOf(stack.device.program.pid).rss })
    }
    writeFileSync(`${at}.go-${step}`, '')
  }
  await stack.ended(runPublicId)
  return sizes
}

/** The server has acknowledged every event. */
async function allStored(stack: StandInStack, events: number): Promise<void> {
  const spool = openSpool(join(stack.device.stateDir, 'spool.db'), { repair: false })
  try {
    const storedAll = () => spool.runs().some(({ lastSeq, ackedSeq }) => lastSeq >= events && ackedSeq === lastSeq)
    await waitFor(storedAll, `${events} events are stored`, { ms: 120_000, everyMs: 100 })
  } finally {
    spool.close()
  }
}
