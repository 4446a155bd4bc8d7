import type { TaskId } from '../../../../shared/lib/ids.ts'
import { countOf } from '../../../db/reads.ts'
import { z } from 'zod'
import { flag, int, nullableTime, text, time } from '../../../db/columns.ts'
import { actorRef, taskId } from '../../../db/id-columns.ts'
import type { Db } from '../../../db/open.ts'
import { table, type RowOf } from '../../../db/table.ts'

const items = table(
  'task_checklist_items',
  {
    id: text,
    taskId,
    text,
    done: flag,
    /** The place from 0, without gaps among the items that are not archived. */
    position: int,
    completedAt: nullableTime,
    completedByType: z.enum(['user', 'agent']).nullable(),
    completedByRef: actorRef.nullable(),
    archivedAt: nullableTime,
    createdAt: time,
    updatedAt: time,
  },
  { columns: { completedByRef: 'completed_by_id' } },
)
export type ChecklistRow = RowOf<typeof items>

export async function insertChecklistItems(db: Db, added: readonly ChecklistRow[]): Promise<void> {
  await items.insert(db, added)
}

export async function replaceChecklistItem(db: Db, item: ChecklistRow): Promise<void> {
  const { id, taskId, createdAt: _, ...changed } = item
  await items.update(db, { id, taskId }, changed)
}

/** Archived ones too. */
export async function findChecklistItem(db: Db, taskId: TaskId, id: string): Promise<ChecklistRow | null> {
  return items.find(db, { taskId, id })
}

/**
 * The items of the tasks that are not archived, in their order: the first `ofEach` of a task. Of more than `inAll` of them
 * the last ones of the longest lists are left out.
 */
export async function listChecklists(
  db: Db,
  taskIds: readonly TaskId[],
  { ofEach, inAll }: { ofEach: number; inAll: number },
): Promise<Map<TaskId, ChecklistRow[]>> {
  if (taskIds.length === 0) return new Map()
  const query = items
    .from(db)
    .whereIn('task_id', [...taskIds])
    .whereNull('archived_at')
    // Positions have no gaps, so they cut each list off.
    .where('position', '<', ofEach)
    .orderBy(['position', 'id'])
    .limit(inAll)
  return Map.groupBy(await items.list(query), (item) => item.taskId)
}

/** Lets the items between two places make room for one that goes from the one to the other, and close the gap behind it. */
export async function shiftPositions(
  db: Db,
  { taskId, from, to }: { taskId: TaskId; from: number; to: number },
): Promise<void> {
  if (from === to) return
  const others = db('task_checklist_items').where({ task_id: taskId }).whereNull('archived_at')
  if (to < from) await others.whereBetween('position', [to, from - 1]).increment('position', 1)
  else await others.whereBetween('position', [from + 1, to]).decrement('position', 1)
}

/** Items that are not archived. */
export async function countChecklistItems(db: Db, taskId: TaskId): Promise<number> {
  return countOf(db('task_checklist_items').where({ task_id: taskId }).whereNull('archived_at'))
}
