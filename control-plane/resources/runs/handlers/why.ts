import { runWhyRoutes } from '../../../../shared/api/run-why.ts'
import { implement, type ImplementedRoute } from '../../../http/implement.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { readableRunAndAgent } from '../lookup.ts'
import { loadWhyFacts } from '../steps/present.ts'
import { whyOf } from '../why.ts'

export function runWhyHandlers({
  leaseMs,
  waits,
}: Pick<ResourceDependencies, 'leaseMs' | 'waits'>): ImplementedRoute[] {
  return implement(runWhyRoutes, {
    async why({ db, caller, params, world }) {
      const { run, agent } = await readableRunAndAgent(db, caller, params.runId)
      const facts = await loadWhyFacts(db, run, { now: world.now(), leaseMs, agent })
      return { object: 'why', run: run.id, ...whyOf({ ...facts, waits }) }
    },
  })
}
