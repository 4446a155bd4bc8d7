import type { AgentRef, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Db } from '../../db/open.ts'

/** Adds the cost of a run to the agent's spending in that month; a new month begins a new sum. */
export async function recordSpend(
  db: Db,
  agentRef: AgentRef,
  spend: { month: string; nanoUsd: number },
): Promise<void> {
  const { month, nanoUsd } = spend
  const isSame = 'spent_month is not null and spent_month >= ?'
  await db('agents')
    .where({ id: agentRef })
    .update({
      spent_nano_usd: db.raw(`case when ${isSame} then spent_nano_usd + ? else ? end`, [month, nanoUsd, nanoUsd]),
      // A clock that was set back adds to the later month.
      spent_month: db.raw(`case when ${isSame} then spent_month else ? end`, [month, month]),
    })
}

/** The spending of all agents of a workspace, deleted ones included, in a month, in billionths of a dollar. */
export async function sumSpend(db: Db, workspaceId: WorkspaceUuid, month: string): Promise<number> {
  const summed: unknown = await db('agents')
    .where({ workspace_id: workspaceId, spent_month: month })
    .sum({ n: 'spent_nano_usd' })
    .first()
  return Number((summed as { n: unknown }).n ?? 0)
}
