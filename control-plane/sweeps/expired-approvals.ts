import { inPages } from '../db/table.ts'
import type { Tx } from '../db/open.ts'
import { agentOfBudget, reviewBudgets } from '../resources/approvals/steps/budget-hold.ts'
import { closeByPlatform, wakeUnanswered } from '../resources/approvals/steps/close.ts'
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
/** Approvals that are read at once. */
const pageSize = 500

/**
 * Closes approvals whose time is over: a `tool_permission` a day after its run ended, a `platform_change` a week after
 * it was raised. A budget that a new month has refilled closes its approval. Several replicas may work at once: each
 * closing is a compare-and-set. Each round reads to the end: what stays open would hide what stands behind it.
 */
export const expiredApprovalsSweep: Sweep = {
  name: 'expired_approvals',
  everyMs: hour,
  async run(context) {
    const { root, now } = context
    await eachOf(
      (page) =>
        listApprovalsOfEndedRuns(root, { trigger: 'tool_permission', endedBefore: now - toolPermissionMs, ...page }),
      (approval) => expire(context, approval, 'the run has been over for 24 hours'),
    )
    await eachOf(
      (page) => listOpenApprovals(root, { trigger: 'platform_change', raisedBefore: now - platformChangeMs, ...page }),
      (approval) => expire(context, approval, 'nobody resolved it within 7 days'),
    )
    await eachOf(
      (page) => listOpenApprovals(root, { trigger: 'budget_breach', raisedBefore: now, ...page }),
      (approval) => reviewBudget(context, approval),
    )
  },
}

async function eachOf(
  list: (page: { after?: DueApproval; limit: number }) => Promise<DueApproval[]>,
  handle: (approval: DueApproval) => void,
): Promise<void> {
  for await (const page of inPages(pageSize, list)) for (const approval of page) handle(approval)
}

function expire({ root, world, log, queue }: SweepContext, due: DueApproval, reason: string): void {
  const { id, workspaceId, trigger } = due
  const close = async (tx: Tx) => {
    const approval = await findApproval(tx, workspaceId, id)
    if (approval === null || !(await closeByPlatform(tx, approval, { outcome: 'expired', reason, world }))) return false
    await wakeUnanswered(tx, approval, world)
    return true
  }
  const closeAndTell = async () => {
    const closed = await inTransaction(root, close, { locks: [workspaceId] })
    if (closed) log.info({ approvalId: id, trigger }, 'approval expired')
  }
  queue.add(workspaceId, closeAndTell, id)
}

function reviewBudget({ root, world, queue }: SweepContext, approval: DueApproval): void {
  const { id, workspaceId } = approval
  const review = (tx: Tx) => reviewBudgets(tx, { workspaceId, agentRef: agentOfBudget(approval) }, world)
  queue.add(workspaceId, () => inTransaction(root, review, { locks: [workspaceId] }), id)
}
