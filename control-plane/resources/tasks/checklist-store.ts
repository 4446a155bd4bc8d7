import { countOf } from '../../db/reads.ts'
import { z } from 'zod'
import { flag, int, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

const items = table('task_checklist_items', {
  id: text,
  taskId: text,
  text,
  done: flag,
  /** From 0, without gaps among the items that are not archived. */
  position: int,
  completedAt: nullableTime,
  completedByType: z.enum(['user', 'agent']).nullable(),
  completedById: nullableText,
  archivedAt: nullableTime,
  createdAt: time,
  updatedAt: time,
})
export type ChecklistRow = RowOf<typeof items>

export async function insertChecklistItem(db: Db, item: ChecklistRow): Promise<void> {
  await items.insert(db, item)
}

export async function replaceChecklistItem(db: Db, item: ChecklistRow): Promise<void> {
  const { id, taskId, createdAt: _, ...changed } = item
  await items.update(db, { id, taskId }, changed)
}

/** Archived ones too. */
export async function findChecklistItem(db: Db, taskId: string, id: string): Promise<ChecklistRow | null> {
  return items.find(db, { taskId, id })
}

/** The items of the tasks that are not archived, in their order; at most `limit` of each task when it is given. */
export async function listChecklists(
  db: Db,
  taskIds: readonly string[],
  limit?: number,
): Promise<Map<string, ChecklistRow[]>> {
  const lists = new Map<string, ChecklistRow[]>()
  if (taskIds.length === 0) return lists
  const query = items
    .from(db)
    .whereIn('task_id', [...taskIds])
    .whereNull('archived_at')
  // Positions have no gaps, so they cut each list off.
  if (limit !== undefined) void query.where('position', '<', limit)
  for (const item of await items.list(query.orderBy([{ column: 'position' }, { column: 'id' }]))) {
    const list = lists.get(item.taskId)
    if (list) list.push(item)
    else lists.set(item.taskId, [item])
  }
  return lists
}

/** Writes the positions of items that have others now. */
export async function replacePositions(db: Db, moved: readonly { id: string; position: number }[]): Promise<void> {
  for (const { id, position } of moved) await db('task_checklist_items').where({ id }).update({ position })
}

/** Items that are not archived. */
export async function countChecklistItems(db: Db, taskId: string): Promise<number> {
  return countOf(db('task_checklist_items').where({ task_id: taskId }).whereNull('archived_at'))
}
