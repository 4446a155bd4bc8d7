import { centsToNanoUsd, monthOf, spentNow } from '../../catalog/price.ts'
import type { Db } from '../../db/open.ts'
import { sumSpend } from './spend-store.ts'
import type { AgentRow } from './store.ts'
import type { WorkspaceRow } from '../workspaces/store.ts'

/** Returns whether ended runs of this month have cost as much as the budget allows. */
export function isAgentBudgetSpent(
  agent: Pick<AgentRow, 'monthlyBudgetCents' | 'spentMonth' | 'spentNanoUsd'>,
  now: number,
): boolean {
  if (agent.monthlyBudgetCents === null) return false
  const spent = spentNow({ month: agent.spentMonth, nanoUsd: agent.spentNanoUsd }, now)
  return spent >= centsToNanoUsd(agent.monthlyBudgetCents)
}

/** Returns whose monthly budget is spent; null: neither's. */
export async function spentBudgetOf(
  db: Db,
  { agent, workspace, now }: { agent: AgentRow; workspace: WorkspaceRow; now: number },
): Promise<'agent' | 'workspace' | null> {
  if (isAgentBudgetSpent(agent, now)) return 'agent'
  if (workspace.monthlyBudgetCents === null) return null
  const spent = await sumSpend(db, workspace.id, monthOf(now))
  return spent >= centsToNanoUsd(workspace.monthlyBudgetCents) ? 'workspace' : null
}
