import type { ApprovalId, ConversationId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { z } from 'zod'
import { learningStatuses, storedBullet, type Entity } from '../../../shared/api/learning-fields.ts'
import { withoutUndefined } from '../../../shared/lib/without-undefined.ts'
import { int, json, nullableText, text, time } from '../../db/columns.ts'
import { agentRef, approvalId, conversationId, runId, taskId, workspaceUuid } from '../../db/id-columns.ts'
import { newestFirst, type OlderPage } from '../../db/id-page.ts'
import type { Db } from '../../db/open.ts'
import { countOf } from '../../db/reads.ts'
import { table, type RowOf } from '../../db/table.ts'
import { onlyVisibleWork, type WorkViewer } from '../projects/work-visibility.ts'

const learnings = table(
  'learnings',
  {
    id: text,
    workspaceId: workspaceUuid,
    topic: text,
    status: z.enum(learningStatuses),
    bullets: json(z.array(storedBullet)),
    /** The agent that filed it; null: a person did. */
    agentRef: agentRef.nullable(),
    runId: runId.nullable(),
    /** The task on which it was learned. */
    taskId: taskId.nullable(),
    conversationId: conversationId.nullable(),
    approvalId,
    rejectedReason: nullableText,
    version: int,
    createdAt: time,
    updatedAt: time,
  },
  { columns: { agentRef: 'agent_id' } },
)
export type LearningRow = RowOf<typeof learnings>

const entities = table('learning_entities', {
  learningId: text,
  workspaceId: workspaceUuid,
  ord: int,
  type: text,
  name: text,
})

export async function insertLearning(db: Db, learning: LearningRow): Promise<void> {
  await learnings.insert(db, learning)
}

/** Fails with `transient_conflict` when somebody else changed it since it was read. */
export async function replaceLearning(db: Db, before: LearningRow, after: LearningRow): Promise<void> {
  await learnings.replace(db, before, after)
}

export async function findLearning(db: Db, workspaceId: WorkspaceUuid, id: string): Promise<LearningRow | null> {
  return learnings.find(db, { workspaceId, id })
}

export async function findLearningOfApproval(db: Db, approvalId: ApprovalId): Promise<LearningRow | null> {
  return learnings.find(db, { approvalId })
}

/** Makes these, in this order, all that the learning is about. */
export async function replaceEntities(
  db: Db,
  { id: learningId, workspaceId }: Pick<LearningRow, 'id' | 'workspaceId'>,
  all: readonly Entity[],
): Promise<void> {
  await db('learning_entities').where({ learning_id: learningId }).delete()
  await entities.insert(
    db,
    all.map(({ type, name }, ord) => ({ learningId, workspaceId, ord, type, name })),
  )
}

/** Returns what these learnings are about, in the order given by whoever filed them, by `lrn_` id; a learning without any has no entry. */
export async function listEntities(db: Db, learningIds: readonly string[]): Promise<Map<string, Entity[]>> {
  const found = new Map<string, Entity[]>()
  if (learningIds.length === 0) return found
  const rows = entities
    .from(db)
    .whereIn('learning_id', [...learningIds])
    .orderBy(['learning_id', 'ord'])
  for (const { learningId, type, name } of await entities.list(rows))
    found.set(learningId, [...(found.get(learningId) ?? []), { type, name }])
  return found
}

export interface LearningFilter extends OlderPage {
  workspaceId: WorkspaceUuid
  /** The viewer: learnings of private agents are left out unless they see those, or are the reviewer. Left out: nothing is hidden. */
  visibleTo?: WorkViewer
  status?: LearningRow['status']
  entityType?: string
  entityName?: string
  conversationId?: ConversationId
  approvalId?: ApprovalId
}

/** Lists learnings newest first; returns one row more than `limit`. */
export async function listLearnings(db: Db, filter: LearningFilter): Promise<LearningRow[]> {
  const { workspaceId, visibleTo, status, entityType, entityName, conversationId, approvalId } = filter
  const query = learnings
    .from(db)
    .where(learnings.toColumns(withoutUndefined({ workspaceId, status, conversationId, approvalId })))
  if (entityType !== undefined || entityName !== undefined) {
    const named = entities.toColumns(withoutUndefined({ workspaceId, type: entityType, name: entityName }))
    void query.whereIn('id', (about) => void about.from('learning_entities').select('learning_id').where(named))
  }
  if (visibleTo !== undefined) onlyVisible(query, visibleTo)
  return learnings.list(newestFirst(query, filter))
}

/** The number of learnings that this viewer sees. */
export async function countLearnings(
  db: Db,
  { workspaceId, visibleTo }: Pick<LearningFilter, 'workspaceId' | 'visibleTo'>,
): Promise<number> {
  const query = db('learnings').where({ workspace_id: workspaceId })
  if (visibleTo !== undefined) onlyVisible(query, visibleTo)
  return countOf(query)
}

/** Restricts a query to what the viewer may read, as `mayRead` decides it for one row. */
function onlyVisible(query: Knex.QueryBuilder, viewer: WorkViewer): void {
  void query.where((any) => {
    void any.where({ status: 'accepted' })
    void any.orWhere((seen) => onlyVisibleWork(seen, { viewer, table: 'learnings' }))
    if (!('personUuid' in viewer)) return
    const theirs = { assigned_type: 'user', assigned_id: viewer.personRef }
    void any.orWhereIn('approval_id', (reviewed) => void reviewed.from('approvals').select('id').where(theirs))
  })
}
