import type { AgentRef, RunId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { int } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { query } from '../../db/statement.ts'

/** The rows that the end of a run may have to close or raise, read with one query since most runs leave nothing. */
export interface LeftByRun {
  /** The run asked a person something that is still open. */
  hasOpenHolds: boolean
  /** The agent or the workspace of the run has a budget, or an approval about a spent budget is open. */
  hasBudgets: boolean
}

const left = query(
  `select
     case when exists (select 1 from approvals where run_id = ? and status = 'open')
            or exists (select 1 from questions where run_id = ? and status = 'open' and workflow_run_id is null) then 1 else 0 end as holds,
     case when exists (select 1 from agents where id = ? and monthly_budget_cents is not null)
            or exists (select 1 from workspaces where id = ? and monthly_budget_cents is not null)
            or exists (select 1 from approvals where workspace_id = ? and status = 'open' and "trigger" = 'budget_breach')
          then 1 else 0 end as budgets`,
  z
    .object({ holds: int, budgets: int })
    .transform((r): LeftByRun => ({ hasOpenHolds: r.holds === 1, hasBudgets: r.budgets === 1 })),
)

export async function findLeftByRun(
  db: Db,
  run: { id: RunId; agentRef: AgentRef; workspaceId: WorkspaceUuid },
): Promise<LeftByRun> {
  const { id, agentRef, workspaceId } = run
  return (await left.first(db, [id, id, agentRef, workspaceId, workspaceId]))!
}
