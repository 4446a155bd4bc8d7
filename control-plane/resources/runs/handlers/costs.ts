import { idFrom, type AgentRef, type ProjectUuid } from '../../../../shared/lib/ids.ts'
import { costRoutes, mostCosts, mostCountedRuns, type Cost, type CostGrouping } from '../../../../shared/api/costs.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { implement, type ImplementedRoute } from '../../../http/implement.ts'
import { listAgentIdentities } from '../../agents/identity-store.ts'
import { handleText } from '../../agents/present.ts'
import { projectViewerOf } from '../../projects/rules.ts'
import { listProjectsByIds } from '../../projects/store.ts'
import { workViewerOf } from '../../projects/work-visibility.ts'
import { listRunCosts, type CostFilter, type CostRow } from '../own/cost-store.ts'
import { CostTally, spentBy } from '../own/costs.ts'
import { readableRun } from '../lookup.ts'

const week = 7 * 24 * 3_600_000
/** So many rows are read by one statement, while SQLite does nothing else. */
const rowsAtOnce = 500

export function costHandlers(): ImplementedRoute[] {
  return implement(costRoutes, {
    async list({ db, caller, query, world }) {
      const { by, timezone } = query
      const now = world.now()
      const until = query.until === undefined ? now + 1 : Date.parse(query.until)
      const since = query.since === undefined ? now - week : Date.parse(query.since)
      const visibleTo = workViewerOf(caller)
      const filter = { workspaceId: caller.workspaceId, ...withoutUndefined({ visibleTo }), since, until }
      const tally = new CostTally(by, { timezone, now })
      const last = await addUp(db, filter, tally)
      const costs = tally.costs()
      return {
        by,
        since: toTimestamp(last ?? since),
        until: toTimestamp(until),
        total: tally.total,
        data: await named(db, { caller, by }, costs.slice(0, mostCosts)),
        leftOut: Math.max(0, costs.length - mostCosts),
      }
    },

    async run({ db, caller, params, world }) {
      const run = await readableRun(db, caller, params.runId)
      return {
        runId: run.id,
        costUsd: run.costUsd,
        model: run.usage?.model ?? run.modelId,
        ...spentBy(run, world.now()),
        isFinal: run.endedAt !== null,
      }
    },
  })
}

/** Adds the runs up, newest first. Returns when the last of them was created where there are more than are counted, else null. */
async function addUp(db: Db, filter: Omit<CostFilter, 'limit' | 'before'>, tally: CostTally): Promise<number | null> {
  let before: CostRow | null = null
  for (let counted = 0; counted < mostCountedRuns; counted += rowsAtOnce) {
    const rows: CostRow[] = await listRunCosts(db, { ...filter, limit: rowsAtOnce, ...(before !== null && { before }) })
    const page = rows.slice(0, rowsAtOnce)
    for (const row of page) tally.add(row)
    before = page.at(-1) ?? before
    if (rows.length <= rowsAtOnce) return null
  }
  return before?.createdAt ?? null
}

/** Gives agents their handles, and projects their names as far as the caller sees them. */
async function named(
  db: Db,
  { caller, by }: { caller: Caller; by: CostGrouping },
  costs: readonly Cost[],
): Promise<Cost[]> {
  const ids = costs.flatMap(({ id }) => id ?? [])
  const names = new Map<string, string>()
  if (by === 'agent') {
    const agents = await listAgentIdentities(
      db,
      ids.map((id) => idFrom<AgentRef>(id)),
    )
    for (const agent of agents) names.set(agent.id, handleText(agent))
  }
  if (by === 'project') {
    const of = { workspaceId: caller.workspaceId, ids: ids.map((id) => idFrom<ProjectUuid>(id)) }
    for (const project of await listProjectsByIds(db, { ...of, viewer: projectViewerOf(caller) }))
      names.set(project.id, `${project.prefix} ${project.name}`)
  }
  return costs.map((cost) => ({ ...cost, name: names.get(cost.id ?? '') ?? cost.name }))
}
