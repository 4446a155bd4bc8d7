import { z } from 'zod'
import { int, json, nullableText, text, time } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

/** The history of tasks. `source`: `activity`, or `git` for events of a git host. */
export const activitySources = ['activity', 'git'] as const

const activity = table('task_activity', {
  /** Grows: the order in which things happened, also within one moment. */
  seq: int,
  id: text,
  taskId: text,
  source: z.enum(activitySources),
  kind: text,
  actorType: z.enum(['user', 'agent', 'system']),
  actorId: nullableText,
  data: json(z.record(z.string(), z.unknown())),
  createdAt: time,
})
export type ActivityRow = RowOf<typeof activity>

export async function insertActivity(db: Db, entry: Omit<ActivityRow, 'seq'>): Promise<void> {
  await activity.insert(db, entry)
}

/** Newest first; one row more than `limit`. */
export async function listActivity(
  db: Db,
  filter: { taskId: string; source?: ActivityRow['source']; beforeSeq?: number; limit: number },
): Promise<ActivityRow[]> {
  const query = activity.from(db).where({ task_id: filter.taskId })
  if (filter.source !== undefined) void query.where({ source: filter.source })
  if (filter.beforeSeq !== undefined) void query.where('seq', '<', filter.beforeSeq)
  return activity.list(query.orderBy('seq', 'desc').limit(filter.limit + 1))
}
