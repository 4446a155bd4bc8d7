import type { Approval, ApprovalSummary, GatedThing } from '../../../shared/api/approvals.ts'
import { toTimestamp } from '../../../shared/api/ids.ts'
import type { Db } from '../../db/open.ts'
import { shownChange } from '../platform-changes/present.ts'
import { listPlatformChanges, type PlatformChangeRow } from '../platform-changes/store.ts'
import { askerOf, platformChangeMs } from './rules.ts'
import type { ApprovalRow } from './store.ts'

/** Approvals as clients read them. The stored writes of a page are loaded at once. */
export async function presentApprovals(db: Db, approvals: readonly ApprovalRow[]): Promise<ApprovalSummary[]> {
  const changes = await changesOf(db, approvals)
  return approvals.map((approval) => summaryOf(approval, changes))
}

export async function presentApproval(db: Db, approval: ApprovalRow): Promise<Approval> {
  const { workspaceId, sessionId } = approval
  return { ...summaryOf(approval, await changesOf(db, [approval])), workspaceId, sessionId }
}

async function changesOf(db: Db, approvals: readonly ApprovalRow[]): Promise<Map<string, PlatformChangeRow>> {
  const ids = approvals.filter((approval) => approval.trigger === 'platform_change').map((approval) => approval.id)
  return new Map((await listPlatformChanges(db, ids)).map((change) => [change.id, change]))
}

function summaryOf(approval: ApprovalRow, changes: ReadonlyMap<string, PlatformChangeRow>): ApprovalSummary {
  const asker = askerOf(approval)
  return {
    object: 'approval',
    id: approval.id,
    taskId: approval.taskId,
    runId: approval.runId,
    trigger: approval.trigger,
    status: approval.status,
    prompt: approval.prompt,
    gatedThing: thingOf(approval, changes.get(approval.id) ?? null),
    requestedBy: { type: asker === null ? 'system' : 'agent', id: asker },
    assignedTo: approval.assignedType && { type: approval.assignedType, id: approval.assignedId },
    result: approval.outcome && { outcome: approval.outcome, reason: approval.reason },
    appliedScope: approval.appliedScope,
    resolvedBy: approval.resolvedType && { type: approval.resolvedType, id: approval.resolvedId },
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
