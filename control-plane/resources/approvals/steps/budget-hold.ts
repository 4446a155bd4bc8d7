import { idFrom, type AgentRef, type WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { centsToNanoUsd, monthOf, spentNow } from '../../../catalog/price.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Db } from '../../../db/open.ts'
import { isAgentBudgetSpent } from '../../agents/budget.ts'
import { sumSpend } from '../../agents/spend-store.ts'
import { findAgent, type AgentRow } from '../../agents/store.ts'
import { findWorkspace, type WorkspaceRow } from '../../workspaces/store.ts'
import { closeByPlatform } from './close.ts'
import { digestOf, raiseApproval } from './raise.ts'
import { findApprovalByKey } from '../store.ts'

// A `budget_breach` is open for as long as a monthly budget is spent: it is raised when the budget is reached, and the
// platform approves it when the budget is raised or removed, or a new month begins. It belongs to no run, since the
// budget must change, and no person resolves it.

interface BudgetState {
  /** null: the workspace's. */
  agentRef: AgentRef | null
  key: string
  name: string
  owner: string
  isSpent: boolean
  spentNanoUsd: number
  budgetCents: number | null
}

/** Makes the open `budget_breach` of an agent match its spending and its budget. */
export async function reviewAgentBudget(tx: Db, agent: AgentRow, world: World): Promise<void> {
  const now = world.now()
  await review(tx, agent.workspaceId, {
    world,
    state: {
      agentRef: agent.id,
      key: agentBudgetKey(agent.id),
      name: `agent:@${agent.handle}`,
      owner: agent.name,
      isSpent: agent.deletedAt === null && isAgentBudgetSpent(agent, now),
      spentNanoUsd: spentNow({ month: agent.spentMonth, nanoUsd: agent.spentNanoUsd }, now),
      budgetCents: agent.monthlyBudgetCents,
    },
  })
}

/** Makes the open `budget_breach` of a workspace match its spending and its budget. */
export async function reviewWorkspaceBudget(tx: Db, workspace: WorkspaceRow, world: World): Promise<void> {
  const { monthlyBudgetCents } = workspace
  const spentNanoUsd = monthlyBudgetCents === null ? 0 : await sumSpend(tx, workspace.id, monthOf(world.now()))
  await review(tx, workspace.id, {
    world,
    state: {
      agentRef: null,
      key: workspaceBudgetKey,
      name: 'workspace',
      owner: 'the workspace',
      isSpent: monthlyBudgetCents !== null && spentNanoUsd >= centsToNanoUsd(monthlyBudgetCents),
      spentNanoUsd,
      budgetCents: monthlyBudgetCents,
    },
  })
}

const agentBudgetKey = (agentRef: AgentRef) => `budget:${agentRef}`
const workspaceBudgetKey = 'budget:workspace'

/** The id of the agent whose budget an approval is about; null: the workspace's, or that of one run. */
export const agentOfBudget = ({ raiseKey }: { raiseKey: string | null }): AgentRef | null =>
  raiseKey?.startsWith('budget:agt_') ? idFrom(raiseKey.slice('budget:'.length)) : null

/**
 * Reviews both budgets after a run of this agent has ended or a month has passed. `agentId` null: only the workspace's.
 */
export async function reviewBudgets(
  tx: Db,
  of: { workspaceId: WorkspaceUuid; agentRef: AgentRef | null },
  world: World,
): Promise<void> {
  const agent = of.agentRef === null ? null : await findAgent(tx, of.agentRef)
  if (agent !== null) await reviewAgentBudget(tx, agent, world)
  const workspace = await findWorkspace(tx, of.workspaceId)
  if (workspace !== null) await reviewWorkspaceBudget(tx, workspace, world)
}

async function review(
  tx: Db,
  workspaceId: WorkspaceUuid,
  { state, world }: { state: BudgetState; world: World },
): Promise<void> {
  if (state.isSpent) {
    const prompt = `The monthly budget of ${state.owner} is spent: $${dollars(state.spentNanoUsd / 1e9)} of $${dollars((state.budgetCents ?? 0) / 100)}. Raise it to let runs start again.`
    await raiseApproval(
      tx,
      {
        workspaceId,
        agentRef: state.agentRef,
        runId: null,
        taskId: null,
        conversationId: null,
        sessionId: null,
        trigger: 'budget_breach',
        prompt,
        gatedThing: {
          kind: 'budget',
          name: state.name,
          inputDigest: digestOf([state.key, state.budgetCents]),
          safeSummary: prompt,
          scope: 'once',
        },
        raiseKey: state.key,
      },
      world,
    )
    return
  }
  const open = await findApprovalByKey(tx, workspaceId, state.key)
  if (open !== null) await closeByPlatform(tx, open, { outcome: 'approve', reason: 'budget_raised', world })
}

const dollars = (amount: number): string => amount.toFixed(2)
