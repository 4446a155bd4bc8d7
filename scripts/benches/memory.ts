import { delay, Program } from '../../test/kit/programs.ts'
import { join } from 'node:path'
import type { Bench, Context } from './context.ts'
import { atMost, compare, type Comparison } from './measure.ts'
import { processFigures, startDevice, startServer } from './stack.ts'

const settleMs = 3_000
const watchedMs = 5_000
const megabyte = 1024 * 1024

/** Each round starts the programs anew and looks at them after some seconds of rest. */
export const memory: Bench = {
  name: 'memory',
  about: 'resident memory and processor time of the idle daemon and server, against a bare node that waits',
  async run(context) {
    const idle = { daemon: [] as number[], server: [] as number[], bare: [] as number[] }
    const cpu: number[] = []
    for (let round = 0; round < context.rounds; round++) {
      idle.bare.push(await bareNode(context))
      const { daemon, server, cpuMs } = await idlePair(context, round)
      idle.daemon.push(daemon)
      idle.server.push(server)
      if (cpuMs !== null) cpu.push(cpuMs)
    }
    const common = { unit: 'MB', peerIs: 'bare node', rounds: context.rounds }
    const each = (values: readonly number[]) => (round: number) => Promise.resolve([values[round] ?? Number.NaN])
    const peer = each(idle.bare)
    const comparisons: Comparison[] = [
      { ...common, goal: 18, name: 'daemon, idle', target: atMost(1.5), ours: each(idle.daemon), peer },
      { ...common, name: 'server, idle', ours: each(idle.server), peer },
    ]
    if (cpu.length > 0) {
      const allowed = () => Promise.resolve([0.5])
      comparisons.push({
        goal: 18,
        name: 'daemon, idle: processor time per second',
        unit: 'ms/s',
        peerIs: 'allowed',
        target: atMost(1),
        rounds: cpu.length,
        ours: each(cpu),
        peer: allowed,
      })
    }
    return Promise.all(comparisons.map(compare))
  },
}

async function idlePair(context: Context, round: number) {
  const server = await startServer(context, { name: `memory-${round}` })
  const device = await startDevice(context, { server, name: `memory-device-${round}` })
  try {
    await device.whenWarm()
    await delay(settleMs)
    const before = processFigures(device.program.pid)
    await delay(watchedMs)
    const after = processFigures(device.program.pid)
    const cpuMs =
      before.cpuMs === null || after.cpuMs === null ? null : (after.cpuMs - before.cpuMs) / (watchedMs / 1000)
    return { daemon: after.rssBytes / megabyte, server: processFigures(server.program.pid).rssBytes / megabyte, cpuMs }
  } finally {
    await device.end()
    await server.end()
  }
}

async function bareNode({ scratch }: Context): Promise<number> {
  const program = new Program({
    name: 'bare node',
    cwd: scratch,
    logPath: join(scratch, 'bare.log'),
    args: ['-e', 'setInterval(() => {}, 1e9)'],
    env: { PATH: process.env['PATH'] ?? '' },
  })
  await delay(1_000)
  const { rssBytes } = processFigures(program.pid)
  await program.kill9()
  return rssBytes / megabyte
}
