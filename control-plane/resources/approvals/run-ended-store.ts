import type { RunId } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { int } from '../../db/columns.ts'
import { runId } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { query } from '../../db/statement.ts'

/** The rows that the end of a run may have to close or raise, read with one query since most runs leave nothing. */
export interface LeftByRun {
  /** The run asked a person something that is still open. */
  hasOpenHolds: boolean
  /** The agent or the workspace of the run has a budget, or an approval about a spent budget is open. */
  hasBudgets: boolean
}

const ofRuns = (which: string) =>
  query(
    `select runs.id,
       case when exists (select 1 from approvals where run_id = runs.id and status = 'open')
              or exists (select 1 from questions where run_id = runs.id and status = 'open' and workflow_run_id is null) then 1 else 0 end as holds,
       case when exists (select 1 from agents where id = runs.agent_id and monthly_budget_cents is not null)
              or exists (select 1 from workspaces where id = runs.workspace_id and monthly_budget_cents is not null)
              or exists (select 1 from approvals where workspace_id = runs.workspace_id and status = 'open' and "trigger" = 'budget_breach')
            then 1 else 0 end as budgets
     from runs where ${which}`,
    z
      .object({ id: runId, holds: int, budgets: int })
      .transform((r) => ({ runId: r.id, left: { hasOpenHolds: r.holds === 1, hasBudgets: r.budgets === 1 } })),
  )
const ofOne = ofRuns('runs.id = ?')
const ofAll = ofRuns('runs.id in ?')

export async function findLeftByRun(db: Db, id: RunId): Promise<LeftByRun> {
  return (await ofOne.first(db, [id]))!.left
}

export async function listLeftByRuns(db: Db, ids: readonly RunId[]): Promise<Map<RunId, LeftByRun>> {
  return new Map((await ofAll.list(db, [ids])).map(({ runId, left }) => [runId, left]))
}
