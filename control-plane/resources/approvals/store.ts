import type { ApprovalId, ConversationId, PersonRef, RunId, TaskId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { z } from 'zod'
import {
  approvalOutcomes,
  approvalScopes,
  approvalTriggers,
  holdStatuses,
  storedGatedThing,
  type ApprovalTrigger,
} from '../../../shared/api/approval-words.ts'
import { int, json, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import { agentRef, approvalId, conversationId, personRef, runId, taskId, workspaceUuid } from '../../db/id-columns.ts'
import { pageById, type IdPage } from '../../db/id-page.ts'
import type { Db } from '../../db/open.ts'
import { expectOnlyWriter, table, type RowOf } from '../../db/table.ts'
import { onlyVisibleWork, type WorkViewer } from '../projects/work-visibility.ts'
import { withoutUndefined } from '../../../shared/lib/without-undefined.ts'

const approvals = table(
  'approvals',
  {
    id: approvalId,
    workspaceId: workspaceUuid,
    trigger: z.enum(approvalTriggers),
    status: z.enum(holdStatuses),
    /** The asking agent, or that of a spent budget; null: the platform asks, and about no agent. */
    agentRef: agentRef.nullable(),
    runId: runId.nullable(),
    /** `tsk_...` */
    taskId: taskId.nullable(),
    conversationId: conversationId.nullable(),
    sessionId: nullableText,
    prompt: text,
    gatedThing: json(storedGatedThing),
    /** Unique within the workspace. */
    raiseKey: nullableText,
    assignedType: z.enum(['user', 'system']).nullable(),
    /** `usr_...` */
    assignedRef: personRef.nullable(),
    /** The admin who assigned it to that person, and why; null while it has the default approver. */
    assignedByRef: personRef.nullable(),
    assignReason: nullableText,
    outcome: z.enum(approvalOutcomes).nullable(),
    reason: nullableText,
    appliedScope: z.enum(approvalScopes).nullable(),
    resolvedType: z.enum(['user', 'system']).nullable(),
    resolvedRef: personRef.nullable(),
    resolvedAt: nullableTime,
    version: int,
    createdAt: time,
    updatedAt: time,
  },
  {
    columns: {
      agentRef: 'agent_id',
      assignedRef: 'assigned_id',
      assignedByRef: 'assigned_by',
      resolvedRef: 'resolved_id',
    },
  },
)
export type ApprovalRow = RowOf<typeof approvals>

const { id, workspaceId, trigger, raiseKey, createdAt } = approvals.columns
const dueApprovals = table('approvals', { id, workspaceId, trigger, raiseKey, createdAt })
/** An approval as sweeps list it: what thousands of agents have asked would not fit into memory. */
export type DueApproval = RowOf<typeof dueApprovals>

export type NewApproval = Pick<
  ApprovalRow,
  | 'id'
  | 'workspaceId'
  | 'trigger'
  | 'agentRef'
  | 'runId'
  | 'taskId'
  | 'conversationId'
  | 'sessionId'
  | 'prompt'
  | 'gatedThing'
  | 'raiseKey'
  | 'assignedType'
  | 'assignedRef'
  | 'createdAt'
>

/** Written out, as the indexes of what is open have it: SQLite takes them for no bound value. */
const isOpen = "status = 'open'"

/** Returns the approval's id, or that of the earlier one when its key was used. */
export async function insertApproval(db: Db, approval: NewApproval): Promise<ApprovalId> {
  const row = { ...approval, status: 'open', updatedAt: approval.createdAt } as const
  if (await approvals.insertNew(db, row, ['workspaceId', 'raiseKey'])) return approval.id
  const key = { workspace_id: approval.workspaceId, raise_key: approval.raiseKey }
  return z.object({ id: approvalId }).parse(await db('approvals').where(key).first('id')).id
}

export async function findApproval(db: Db, workspaceId: WorkspaceUuid, id: ApprovalId): Promise<ApprovalRow | null> {
  return approvals.find(db, { workspaceId, id })
}

export interface Resolution {
  outcome: ApprovalRow['outcome'] & string
  reason: string | null
  appliedScope?: ApprovalRow['appliedScope']
  /** `usr_...`; null: the platform. */
  by: PersonRef | null
  at: number
}

/**
 * Closes an open approval. Its key becomes free again unless it names one call. Returns false when somebody else was
 * first.
 */
export async function resolveApproval(db: Db, approval: ApprovalRow, resolution: Resolution): Promise<boolean> {
  const { outcome, reason, appliedScope = null, by, at } = resolution
  const changed = await replaceOpen(db, approval, {
    status: 'resolved',
    outcome,
    reason,
    appliedScope,
    resolvedType: by === null ? 'system' : 'user',
    resolvedRef: by,
    resolvedAt: at,
    updatedAt: at,
    // A call that is sent again late is still the same approval, but a budget may be spent again.
    ...(approval.trigger === 'budget_breach' && { raiseKey: null }),
  })
  return changed === 1
}

/** Fails with `transient_conflict` when the approval changed since it was read. */
export async function replaceAssignee(
  db: Db,
  approval: ApprovalRow,
  change: { personRef: PersonRef; by: PersonRef; reason: string; at: number },
): Promise<void> {
  const { personRef: assignedRef, by: assignedByRef, reason: assignReason, at: updatedAt } = change
  const assigned = {
    assignedType: 'user',
    assignedRef,
    assignedByRef,
    assignReason,
    updatedAt,
  } as const
  expectOnlyWriter(await replaceOpen(db, approval, assigned))
}

const replaceOpen = (db: Db, { id, version }: ApprovalRow, changes: Partial<ApprovalRow>): Promise<number> =>
  approvals.update(db, { id, version, status: 'open' }, { ...changes, version: version + 1 })

export interface ApprovalFilter extends IdPage {
  workspaceId: WorkspaceUuid
  status?: ApprovalRow['status']
  triggers?: readonly string[]
  taskId?: TaskId
  runId?: RunId
  /** The conversation of the approval's run, or of its task; `taskId` null: the conversation is of no task. */
  conversation?: { id: ConversationId; taskId: TaskId | null }
  assignedRef?: string
  /** The viewer whose visible approvals are listed; left out: all approvals. */
  visibleTo?: WorkViewer
}

/** Lists approvals newest first (upwards from a cursor that pages back); returns one row more than `limit`. */
export async function listApprovals(db: Db, filter: ApprovalFilter): Promise<ApprovalRow[]> {
  const { workspaceId, status, taskId, runId } = filter
  const query = approvals.from(db).where(approvals.toColumns(withoutUndefined({ workspaceId, taskId, runId })))
  if (status !== undefined) void (status === 'open' ? query.whereRaw(isOpen) : query.where({ status }))
  if (filter.triggers !== undefined) void query.whereIn('trigger', [...filter.triggers])
  if (filter.assignedRef !== undefined) void query.where({ assigned_type: 'user', assigned_id: filter.assignedRef })
  if (filter.conversation) {
    const { id, taskId } = filter.conversation
    void query.where((any) => {
      void any.where({ conversation_id: id })
      if (taskId !== null) void any.orWhere({ task_id: taskId })
    })
  }
  if (filter.visibleTo) onlyVisible(query, filter.visibleTo)
  return approvals.list(pageById(query, filter))
}

function onlyVisible(query: Knex.QueryBuilder, viewer: WorkViewer): void {
  void query.where((any) => {
    void any.where((seen) => onlyVisibleWork(seen, { viewer, table: 'approvals' }))
    if ('personUuid' in viewer) void any.orWhere({ assigned_id: viewer.personRef })
  })
}

/** Lists open approvals that hold these runs or tasks, oldest first. */
export async function listHoldingApprovals(
  db: Db,
  column: 'run_id' | 'task_id',
  { ids, triggers }: { ids: readonly (RunId | TaskId)[]; triggers: readonly ApprovalTrigger[] },
): Promise<ApprovalRow[]> {
  const found: ApprovalRow[] = []
  for (let at = 0; at < ids.length; at += idsAtOnce) {
    const query = approvals
      .from(db)
      .whereRaw(isOpen)
      .whereIn(column, ids.slice(at, at + idsAtOnce))
      .whereIn('trigger', [...triggers])
    found.push(...(await approvals.list(query)))
  }
  return found.toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
}

/** A statement takes only so many values: a page of workflow runs may have more steps. */
const idsAtOnce = 10_000

/** Oldest first. */
interface SweptPage {
  trigger: ApprovalTrigger
  /** The last one of the page before. */
  after?: DueApproval
  limit: number
}

/** A page of open approvals, of all workspaces. */
const openPage = (db: Db, { trigger, after, limit }: SweptPage): Knex.QueryBuilder =>
  db('approvals')
    .whereRaw(`approvals.${isOpen}`)
    .where({ 'approvals.trigger': trigger })
    .whereRaw('(approvals.created_at, approvals.id) > (?, ?)', [after?.createdAt ?? -1, after?.id ?? ''])
    .orderBy(['approvals.created_at', 'approvals.id'])
    .limit(limit)
    .select(dueApprovals.fields('approvals'))

export async function listOpenApprovals(db: Db, page: SweptPage & { raisedBefore: number }): Promise<DueApproval[]> {
  return dueApprovals.list(openPage(db, page).where('approvals.created_at', '<=', page.raisedBefore))
}

/** Lists open approvals of runs that ended at this time or before. */
export async function listApprovalsOfEndedRuns(
  db: Db,
  page: SweptPage & { endedBefore: number },
): Promise<DueApproval[]> {
  const ofRuns = openPage(db, page).join('runs', 'runs.id', 'approvals.run_id')
  return dueApprovals.list(ofRuns.where('runs.ended_at', '<=', page.endedBefore))
}

/** The open approval with this key; null when there is none. */
export async function findApprovalByKey(
  db: Db,
  workspaceId: WorkspaceUuid,
  raiseKey: string,
): Promise<ApprovalRow | null> {
  return approvals.find(db, { workspaceId, raiseKey, status: 'open' })
}
