import { delay, Program } from '../../test/kit/programs.ts'
import { join } from 'node:path'
import type { Bench, Context } from './context.ts'
import { atMost, compare, type Comparison } from './measure.ts'
import { processFigures, processorMs, startDevice, startServer } from './stack.ts'
import { isShort } from './sizes.ts'

const settleMs = 3_000
/** What a start leaves to do later (probes, the next run host) is over, and what comes once in half a minute is seen more than twice. */
const untilIdleMs = 40_000
const watchedMs = 80_000
/** In the short form it shows only that it works. */
const shortMs = 500
const megabyte = 1024 * 1024

/** Each round starts the programs anew and looks at their memory after some seconds of rest; the last one looks at their processor time, too. */
export const memory: Bench = {
  name: 'memory',
  about: 'resident memory and processor time of the idle daemon and server, against a bare node that waits',
  async run(context) {
    const idle = { daemon: [] as number[], server: [] as number[], bare: [] as number[] }
    let cpu: Awaited<ReturnType<typeof idlePair>>['cpu'] = null
    for (let round = 0; round < context.rounds; round++) {
      idle.bare.push(await bareNode(context))
      const pair = await idlePair(context, { round, isLast: round === context.rounds - 1 })
      idle.daemon.push(pair.daemon)
      idle.server.push(pair.server)
      cpu = pair.cpu
    }
    const common = { unit: 'MB', peerIs: 'bare node', rounds: context.rounds }
    const each = (values: readonly number[]) => (round: number) => Promise.resolve([values[round] ?? Number.NaN])
    const peer = each(idle.bare)
    const comparisons: Comparison[] = [
      { ...common, goal: 18, name: 'daemon, idle', target: atMost(1.5), ours: each(idle.daemon), peer },
      { ...common, name: 'server, idle', ours: each(idle.server), peer },
    ]
    if (cpu !== null) {
      const perSecond = { unit: 'ms/s', rounds: 1, peerIs: 'allowed', peer: each([0.5]) }
      comparisons.push({
        ...perSecond,
        goal: 18,
        name: 'daemon, idle: processor time per second',
        target: atMost(1),
        ours: each([cpu.daemon]),
      })
      comparisons.push({ ...perSecond, name: 'server, idle: processor time per second', ours: each([cpu.server]) })
    }
    return Promise.all(comparisons.map(compare))
  },
}

async function idlePair(context: Context, { round, isLast }: { round: number; isLast: boolean }) {
  const server = await startServer(context, { name: `memory-${round}` })
  const device = await startDevice(context, { server, name: `memory-device-${round}` })
  try {
    await device.whenWarm()
    await delay(isShort ? shortMs : settleMs)
    const pids = { daemon: device.program.pid, server: server.program.pid }
    const rss = (pid: number) => processFigures(pid).rssBytes / megabyte
    const memories = { daemon: rss(pids.daemon), server: rss(pids.server) }
    if (!isLast || process.platform !== 'linux') return { ...memories, cpu: null }
    await delay(isShort ? shortMs : untilIdleMs)
    const before = { daemon: processorMs(pids.daemon), server: processorMs(pids.server), at: performance.now() }
    await delay(isShort ? shortMs : watchedMs)
    const seconds = (performance.now() - before.at) / 1_000
    const perSecond = (name: keyof typeof pids) => (processorMs(pids[name]) - before[name]) / seconds
    return { ...memories, cpu: { daemon: perSecond('daemon'), server: perSecond('server') } }
  } finally {
    await device.end()
    await server.end()
  }
}

async function bareNode(context: Context): Promise<number> {
  const { scratch } = context
  const program = new Program({
    name: 'bare node',
    cwd: scratch,
    logPath: join(scratch, 'bare.log'),
    args: ['-e', 'setInterval(() => {}, 1e9)'],
    env: { PATH: process.env['PATH'] ?? '' },
  })
  await delay(isShort ? shortMs : 1_000)
  const { rssBytes } = processFigures(program.pid)
  await program.kill9()
  return rssBytes / megabyte
}
