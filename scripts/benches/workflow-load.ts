import type { Bench, Context } from './context.ts'
import { atMost, compare, type Result } from './measure.ts'
import { serverProbe } from './server-probe.ts'
import { lagOfChecks } from './workflow-checks.ts'
import { besideHostile } from './workflow-hostile.ts'
import { databases, parkFlows, runFlows, startSide, type On } from './workflow-stack.ts'
import { size } from './sizes.ts'

/** What workflows cost a server beside its other work: those that wait, checks of programs, and hostile ones. */
export const workflowLoad: Bench = {
  name: 'workflow-load',
  about: 'parked workflows, checks of programs and hostile ones, against a server without any',
  async run(context) {
    const results: Result[] = []
    for (const on of await databases(context))
      results.push(await parked(context, on), await lagOfChecks(context, on), ...(await besideHostile(context, on)))
    return results
  },
}

const parkedAtOnce = size(1_000, 10)
/** Each takes half a minute. */
const mostParkedRounds = 3
const megabyte = 1024 * 1024

/** Each round has a server of its own, which does the same work before: as many workflow runs, which have ended. */
async function parked(context: Context, on: On): Promise<Result> {
  const rounds: { without: number; beside: number }[] = []
  for (let round = 0; round < Math.min(context.rounds, mostParkedRounds); round++) {
    const name = `parked-${round}`
    const probe = serverProbe(context, `${name}-${on.name}`)
    const side = await startSide(context, { on, name, nodeFlags: probe.nodeFlags })
    try {
      await runFlows(side, parkedAtOnce)
      const without = (await probe.residentBytes()) / megabyte
      await parkFlows(side, parkedAtOnce)
      rounds.push({ without, beside: (await probe.residentBytes()) / megabyte })
    } finally {
      await side.end()
    }
  }
  return compare({
    name: `server with ${parkedAtOnce.toLocaleString('en')} parked workflow runs (${on.name})`,
    unit: 'MB',
    peerIs: 'without',
    target: atMost(1.1),
    rounds: rounds.length,
    ours: (round) => Promise.resolve([rounds[round]!.beside]),
    peer: (round) => Promise.resolve([rounds[round]!.without]),
  })
}
