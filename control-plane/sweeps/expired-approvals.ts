import type { Tx } from '../db/open.ts'
import { agentOfBudget, reviewBudgets } from '../resources/approvals/steps/budget-gate.ts'
import { closeByPlatform } from '../resources/approvals/steps/close.ts'
import { platformChangeMs, toolPermissionMs } from '../resources/approvals/rules.ts'
import {
  findApproval,
  listApprovalsOfEndedRuns,
  listOpenApprovals,
  type DueApproval,
} from '../resources/approvals/store.ts'
import type { Sweep, SweepContext } from './sweeper.ts'
import { inTransaction } from '../db/transaction.ts'

const hour = 3_600_000
/** The number of approvals of each kind that one round handles, oldest first. */
const perRound = 5_000

/**
 * Closes approvals whose time is over: a `tool_permission` a day after its run ended, a `platform_change` a week after
 * it was raised. A budget that a new month has refilled closes its approval. Several replicas may work at once: each
 * closing is a compare-and-set.
 */
export const expiredApprovalsSweep: Sweep = {
  name: 'expired_approvals',
  everyMs: hour,
  async run(context) {
    const { root, now } = context
    await expire(context, 'the run has been over for 24 hours', () =>
      listApprovalsOfEndedRuns(root, {
        trigger: 'tool_permission',
        endedBefore: now - toolPermissionMs,
        limit: perRound,
      }),
    )
    await expire(context, 'nobody resolved it within 7 days', () =>
      listOpenApprovals(root, { trigger: 'platform_change', raisedBefore: now - platformChangeMs, limit: perRound }),
    )
    await reviewOpenBudgets(context)
  },
}

async function expire(context: SweepContext, reason: string, list: () => Promise<DueApproval[]>): Promise<void> {
  const { root, world, log, lines } = context
  for (const { id, workspaceId, trigger } of await list()) {
    const close = async (tx: Tx) => {
      const approval = await findApproval(tx, workspaceId, id)
      return approval !== null && closeByPlatform(tx, approval, { outcome: 'expired', reason, world })
    }
    const closeAndTell = async () => {
      const closed = await inTransaction(root, close, { turns: [workspaceId] })
      if (closed) log.info({ approvalId: id, trigger }, 'approval expired')
    }
    lines.add(workspaceId, closeAndTell, id)
  }
}

async function reviewOpenBudgets(context: SweepContext): Promise<void> {
  const { root, now, world, lines } = context
  const open = await listOpenApprovals(root, { trigger: 'budget_breach', raisedBefore: now, limit: perRound })
  for (const approval of open) {
    const { id, workspaceId } = approval
    const review = (tx: Tx) => reviewBudgets(tx, { workspaceId, agentId: agentOfBudget(approval) }, world)
    lines.add(workspaceId, () => inTransaction(root, review, { turns: [workspaceId] }), id)
  }
}
