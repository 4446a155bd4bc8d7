import { agentOfBudget, reviewBudgets } from '../resources/approvals/budget-gate.ts'
import { closeByPlatform } from '../resources/approvals/close.ts'
import { platformChangeMs, toolPermissionMs } from '../resources/approvals/rules.ts'
import { listApprovalsOfEndedRuns, listOpenApprovals, type ApprovalRow } from '../resources/approvals/store.ts'
import type { Sweep, SweepContext } from './sweeper.ts'

const hour = 3_600_000
/** More wait for the next batch, at once. */
const batch = 200

/**
 * Closes approvals whose time is over: a `tool_permission` a day after its run ended, a `platform_change` a week after it
 * was raised (document 2, "Limits"). A budget that a new month has filled again opens its gate. Several replicas may work
 * at once: each closing is compare-and-set.
 */
export const expiredApprovalsSweep: Sweep = {
  name: 'expired_approvals',
  everyMs: hour,
  async run(context) {
    const { root, now } = context
    await expire(context, 'the run has been over for 24 hours', () =>
      listApprovalsOfEndedRuns(root, { trigger: 'tool_permission', endedBefore: now - toolPermissionMs, limit: batch }),
    )
    await expire(context, 'nobody resolved it within 7 days', () =>
      listOpenApprovals(root, { trigger: 'platform_change', raisedBefore: now - platformChangeMs, limit: batch }),
    )
    await reviewOpenBudgets(context)
  },
}

async function expire(
  { root, world, log }: SweepContext,
  reason: string,
  list: () => Promise<ApprovalRow[]>,
): Promise<void> {
  for (;;) {
    const due = await list()
    for (const approval of due) {
      const closed = await root.transaction(async (tx) =>
        closeByPlatform(tx, approval, { outcome: 'expired', reason, world }),
      )
      if (closed) log.info({ approvalId: approval.id, trigger: approval.trigger }, 'approval expired')
    }
    if (due.length < batch) return
  }
}

async function reviewOpenBudgets({ root, now, world }: SweepContext): Promise<void> {
  for (const approval of await listOpenApprovals(root, { trigger: 'budget_breach', raisedBefore: now, limit: 5_000 })) {
    const of = { workspaceId: approval.workspaceId, agentId: agentOfBudget(approval) }
    await root.transaction(async (tx) => reviewBudgets(tx, of, world))
  }
}
