import { z } from 'zod'
import { learningStatuses, storedBullets, storedEntities } from '../../../shared/api/learning-fields.ts'
import { int, json, nullableText, text, time } from '../../db/columns.ts'
import { newestFirst } from '../../db/id-page.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

const learnings = table('learnings', {
  id: text,
  workspaceId: text,
  topic: text,
  status: z.enum(learningStatuses),
  bullets: json(storedBullets),
  entities: json(storedEntities),
  conversationId: nullableText,
  /** The agent that filed it; null: a person did. */
  agentId: nullableText,
  runId: nullableText,
  taskId: nullableText,
  approvalId: text,
  rejectedReason: nullableText,
  version: int,
  createdAt: time,
  updatedAt: time,
})
export type LearningRow = RowOf<typeof learnings>

/** The tags once more, for looking learnings up by them. */
const entities = table('learning_entities', { learningId: text, ord: int, workspaceId: text, type: text, name: text })

export async function insertLearning(db: Db, learning: LearningRow): Promise<void> {
  await learnings.insert(db, learning)
  await insertEntities(db, learning)
}

async function insertEntities(db: Db, { id, workspaceId, entities: tags }: LearningRow): Promise<void> {
  for (const [ord, tag] of tags.entries()) await entities.insert(db, { learningId: id, ord, workspaceId, ...tag })
}

/** Fails with `transient_conflict` when somebody else changed it since it was read. */
export async function replaceLearning(db: Db, before: LearningRow, after: LearningRow): Promise<void> {
  await learnings.replace(db, before, after)
  if (after.entities === before.entities) return
  await db('learning_entities').where({ learning_id: after.id }).delete()
  await insertEntities(db, after)
}

export async function findLearning(db: Db, workspaceId: string, id: string): Promise<LearningRow | null> {
  return learnings.find(db, { workspaceId, id })
}

/** The learning about which the approval decides. */
export async function findLearningOfApproval(db: Db, approvalId: string): Promise<LearningRow | null> {
  return learnings.find(db, { approvalId })
}

export interface LearningFilter {
  workspaceId: string
  status?: LearningRow['status']
  conversationId?: string
  approvalId?: string
  /** Of one tag; in lower case. */
  entityType?: string
  entityName?: string
  before?: { createdAt: number; id: string }
  limit: number
}

/** Lists learnings newest first; returns one row more than `limit`. */
export async function listLearnings(db: Db, filter: LearningFilter): Promise<LearningRow[]> {
  const { workspaceId, status, conversationId, approvalId, entityType, entityName } = filter
  const query = learnings.from(db).where({ workspace_id: workspaceId })
  if (status !== undefined) void query.where({ status })
  if (conversationId !== undefined) void query.where({ conversation_id: conversationId })
  if (approvalId !== undefined) void query.where({ approval_id: approvalId })
  if (entityType !== undefined || entityName !== undefined) {
    const tagged = db('learning_entities').select('learning_id').where({ workspace_id: workspaceId })
    if (entityType !== undefined) void tagged.where({ type: entityType })
    if (entityName !== undefined) void tagged.where({ name: entityName })
    void query.whereIn('id', tagged)
  }
  return learnings.list(newestFirst(query, filter))
}

/** The number of learnings with this status. */
export async function countLearnings(
  db: Db,
  { workspaceId, status }: { workspaceId: string; status: LearningRow['status'] },
): Promise<number> {
  const counted: unknown = await db('learnings').where({ workspace_id: workspaceId, status }).count({ n: '*' }).first()
  return z.object({ n: int }).parse(counted).n
}
