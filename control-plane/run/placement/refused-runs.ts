import type { Db } from '../../db/open.ts'
import type { RunRow } from '../../resources/runs/store.ts'
import { loadPlacementFacts, type Moment } from './facts.ts'
import { isRefused } from './placement.ts'
import { findWaiting } from './waiting-store.ts'

/**
 * Returns the runs that others have to wait for: all but those that no device may take. Whoever wakes an agent in vain must not
 * hold up the work of others.
 */
export async function listHolding(db: Db, live: readonly RunRow[], moment: Moment): Promise<RunRow[]> {
  const waiting = live.filter((run) => run.status === 'queued' && run.leaseState === 'none')
  const [first] = waiting
  if (first === undefined || waiting.length < live.length) return [...live]
  const facts = await loadPlacementFacts(db, first.workspaceId, moment)
  const found = await findWaiting(
    db,
    waiting.map(({ id }) => id),
  )
  const refused = new Set(found.filter((run) => isRefused(run.facts, facts)).map(({ id }) => id))
  return live.filter(({ id }) => !refused.has(id))
}
