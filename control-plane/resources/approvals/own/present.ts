import type { Approval, ApprovalSummary, GatedThing } from '../../../../shared/api/approvals.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import type { Db } from '../../../db/open.ts'
import { shownChange } from '../../platform-changes/present.ts'
import { findPlatformChange, listPlatformChanges, type PlatformChangeRow } from '../../platform-changes/store.ts'
import { askerOf, platformChangeMs } from '../rules.ts'
import type { ApprovalRow } from '../store.ts'

/**
 * Longer bodies are left out of lists: some hold a whole AGENT.md, and with a hundred of those the server would mask a page for seconds.
 */
const bodyBytesInLists = 20_000

/** A handler adds the step of a workflow, which is read above the rows of approvals. */
type Bare<Shown> = Omit<Shown, 'workflowStep'>

/** Approvals as lists show them. The stored writes of a page are loaded at once, without long bodies. */
export async function presentApprovals(db: Db, approvals: readonly ApprovalRow[]): Promise<Bare<ApprovalSummary>[]> {
  const ids = approvals.filter((approval) => approval.trigger === 'platform_change').map((approval) => approval.id)
  const listed = await listPlatformChanges(db, ids, { bodyBytes: bodyBytesInLists })
  const changes = new Map(listed.map((change) => [change.id, change]))
  return approvals.map((approval) => summaryOf(approval, changes.get(approval.id) ?? null))
}

export async function presentApproval(db: Db, approval: ApprovalRow): Promise<Bare<Approval>> {
  const { id, workspaceId, sessionId, trigger } = approval
  const change = trigger === 'platform_change' ? await findPlatformChange(db, workspaceId, id) : null
  return { ...summaryOf(approval, change), workspaceId, sessionId }
}

function summaryOf(approval: ApprovalRow, change: PlatformChangeRow | null): Bare<ApprovalSummary> {
  const asker = askerOf(approval)
  return {
    object: 'approval',
    id: approval.id,
    taskId: approval.taskId,
    runId: approval.runId,
    trigger: approval.trigger,
    status: approval.status,
    prompt: approval.prompt,
    gatedThing: thingOf(approval, change),
    requestedBy: { type: asker === null ? 'system' : 'agent', id: asker },
    assignedTo: approval.assignedType && { type: approval.assignedType, id: approval.assignedRef },
    result: approval.outcome && { outcome: approval.outcome, reason: approval.reason },
    appliedScope: approval.appliedScope,
    resolvedBy: approval.resolvedType && { type: approval.resolvedType, id: approval.resolvedRef },
    resolvedAt: toTimestamp(approval.resolvedAt),
    createdAt: toTimestamp(approval.createdAt),
    updatedAt: toTimestamp(approval.updatedAt),
  }
}

function thingOf(approval: ApprovalRow, change: PlatformChangeRow | null): GatedThing {
  if (change === null) return approval.gatedThing
  const expiresAt = toTimestamp(approval.createdAt + platformChangeMs)
  return { ...approval.gatedThing, platformChange: { ...shownChange(change), expiresAt } }
}
