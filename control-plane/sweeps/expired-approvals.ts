import { agentOfBudget, reviewBudgets } from '../resources/approvals/budget-gate.ts'
import { closeByPlatform } from '../resources/approvals/close.ts'
import { platformChangeMs, toolPermissionMs } from '../resources/approvals/rules.ts'
import { listApprovalsOfEndedRuns, listOpenApprovals, type ApprovalRow } from '../resources/approvals/store.ts'
import { oneByOne } from './one-by-one.ts'
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

async function expire(context: SweepContext, reason: string, list: () => Promise<ApprovalRow[]>): Promise<void> {
  const { root, world, log } = context
  for (;;) {
    const due = await list()
    let count = 0
    await oneByOne(context, due, async (approval) => {
      const closed = await root.transaction(async (tx) =>
        closeByPlatform(tx, approval, { outcome: 'expired', reason, world }),
      )
      if (!closed) return
      count++
      log.info({ approvalId: approval.id, trigger: approval.trigger }, 'approval expired')
    })
    // Those that cannot be closed would be listed again.
    if (due.length < batch || count === 0) return
  }
}

async function reviewOpenBudgets(context: SweepContext): Promise<void> {
  const { root, now, world } = context
  const open = await listOpenApprovals(root, { trigger: 'budget_breach', raisedBefore: now, limit: 5_000 })
  await oneByOne(context, open, async (approval) => {
    const of = { workspaceId: approval.workspaceId, agentId: agentOfBudget(approval) }
    await root.transaction(async (tx) => reviewBudgets(tx, of, world))
  })
}
