import { z } from 'zod'
import { flag, int, nullableText, nullableTime, text, time, toFlag } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'

const row = z
  .object({
    id: text,
    task_id: text,
    text,
    done: flag,
    position: int,
    completed_at: nullableTime,
    completed_by_type: z.enum(['user', 'agent']).nullable(),
    completed_by_id: nullableText,
    archived_at: nullableTime,
    created_at: time,
    updated_at: time,
  })
  .transform((r) => ({
    id: r.id,
    taskId: r.task_id,
    text: r.text,
    done: r.done,
    /** From 0, without gaps among the items that are not archived. */
    position: r.position,
    completedAt: r.completed_at,
    completedByType: r.completed_by_type,
    completedById: r.completed_by_id,
    archivedAt: r.archived_at,
    createdAt: r.created_at,
    updatedAt: r.updated_at,
  }))
export type ChecklistRow = z.infer<typeof row>

function toColumns(item: ChecklistRow) {
  return {
    id: item.id,
    task_id: item.taskId,
    text: item.text,
    done: toFlag(item.done),
    position: item.position,
    completed_at: item.completedAt,
    completed_by_type: item.completedByType,
    completed_by_id: item.completedById,
    archived_at: item.archivedAt,
    created_at: item.createdAt,
    updated_at: item.updatedAt,
  }
}

export async function insertChecklistItem(db: Db, item: ChecklistRow): Promise<void> {
  await db('task_checklist_items').insert(toColumns(item))
}

export async function replaceChecklistItem(db: Db, item: ChecklistRow): Promise<void> {
  const { id, task_id: taskId, created_at: _, ...changed } = toColumns(item)
  await db('task_checklist_items').where({ id, task_id: taskId }).update(changed)
}

/** Archived ones too. */
export async function findChecklistItem(db: Db, taskId: string, id: string): Promise<ChecklistRow | null> {
  const found: unknown = await db('task_checklist_items').where({ task_id: taskId, id }).first()
  return found === undefined ? null : row.parse(found)
}

/** The items of the tasks that are not archived, in their order; at most `limit` of each task when it is given. */
export async function listChecklists(
  db: Db,
  taskIds: readonly string[],
  limit?: number,
): Promise<Map<string, ChecklistRow[]>> {
  const lists = new Map<string, ChecklistRow[]>()
  if (taskIds.length === 0) return lists
  const query = db('task_checklist_items')
    .whereIn('task_id', [...taskIds])
    .whereNull('archived_at')
  // Positions have no gaps, so they cut each list off.
  if (limit !== undefined) void query.where('position', '<', limit)
  const rows: unknown[] = await query.orderBy([{ column: 'position' }, { column: 'id' }])
  for (const item of rows.map((value) => row.parse(value))) {
    const list = lists.get(item.taskId)
    if (list) list.push(item)
    else lists.set(item.taskId, [item])
  }
  return lists
}

/** Writes the positions of items that have others now. */
export async function replacePositions(db: Db, items: readonly { id: string; position: number }[]): Promise<void> {
  for (const { id, position } of items) await db('task_checklist_items').where({ id }).update({ position })
}

/** Items that are not archived. */
export async function countChecklistItems(db: Db, taskId: string): Promise<number> {
  const counted: unknown = await db('task_checklist_items')
    .where({ task_id: taskId })
    .whereNull('archived_at')
    .count({ n: '*' })
    .first()
  return Number((counted as { n: unknown }).n)
}
