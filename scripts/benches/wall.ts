import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { makeWall, type Wall } from '../../device-manager/wall/wall.ts'
import { launchInPty } from '../../device-manager/run-host/launch/pty.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { wallSpecOf } from '../../test/kit/wall.ts'
import type { Bench } from './context.ts'
import { compare, quantile, type Result } from './measure.ts'
import { size } from './sizes.ts'

/** From the launch to the exit of a program that does nothing, in a pty: through a wall that stands, and without one. */
export const wall: Bench = {
  name: 'wall',
  about: 'start of a program behind the wall, against the same without it',
  async run(context) {
    const stateDir = join(context.scratch, 'wall-state')
    const own = join(stateDir, 'runs/run_1/harness')
    for (const folder of [own, join(stateDir, 'hosts'), join(stateDir, 'bin')]) mkdirSync(folder, { recursive: true })
    const results: Result[] = []
    for (const tool of ['bwrap', 'unshare'] as const) {
      const spec = wallSpecOf(stateDir, tool)
      if (spec === null) {
        context.say(`NOT MEASURED with ${tool}: it is not installed`)
        continue
      }
      const making: number[] = []
      const standing = await makeWall(spec, [own], realWorld)
      try {
        const result = await compare({
          name: `start of a program, wall made by ${tool}`,
          unit: 'ms',
          peerIs: 'without a wall',
          rounds: context.rounds,
          note: () =>
            `${quantile(making, 0.5).toFixed(1)} ms more are spent ahead of the start, beside git, to make the wall`,
          ours: async () => {
            const before = performance.now()
            await (await makeWall(spec, [own], realWorld)).end()
            making.push(performance.now() - before)
            return samples(standing)
          },
          peer: () => samples(null),
        })
        const more = result.ours.median - result.peer.median
        results.push({
          ...result,
          met: more <= 30,
          note: `${more.toFixed(1)} ms more, 30 allowed; ${result.note}`,
        })
      } finally {
        await standing.end()
      }
    }
    return results
  },
}

const perRound = size(20, 2)

async function samples(standing: Wall | null): Promise<number[]> {
  const command = { file: '/bin/true', args: [], env: { PATH: '/usr/bin:/bin' }, cwd: '/' }
  const times: number[] = []
  for (let i = 0; i < perRound; i++) {
    const before = performance.now()
    const launch = standing === null ? command : { ...standing.enter({ ...command, report: '/dev/null' }), cwd: '/' }
    await launchInPty({ ...launch, onOutput: () => {}, onStderr: () => {} }).leaderGone
    times.push(performance.now() - before)
  }
  return times
}
