import type { TaskId } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { int, json, text, time } from '../../db/columns.ts'
import { actorRef, taskId } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

/** The history of tasks. `source`: `activity`, or `git` for events of a git host. */
export const activitySources = ['activity', 'git'] as const

const activity = table(
  'task_activity',
  {
    /** Grows: the order in which things happened, also within one moment. */
    seq: int,
    id: text,
    taskId,
    source: z.enum(activitySources),
    kind: text,
    actorType: z.enum(['user', 'agent', 'system']),
    actorRef: actorRef.nullable(),
    data: json(z.record(z.string(), z.unknown())),
    createdAt: time,
  },
  { columns: { actorRef: 'actor_id' } },
)
export type ActivityRow = RowOf<typeof activity>

type Entry = Omit<ActivityRow, 'seq'>

/** Several of them are written in pieces, since a statement takes only so many values. */
export async function insertActivity(db: Db, entry: Entry | readonly Entry[]): Promise<void> {
  const all = Array.isArray(entry) ? (entry as readonly Entry[]) : [entry as Entry]
  for (let at = 0; at < all.length; at += 500) await activity.insert(db, all.slice(at, at + 500))
}

/** Newest first; one row more than `limit`. */
export async function listActivity(
  db: Db,
  filter: { taskId: TaskId; source?: ActivityRow['source']; beforeSeq?: number; limit: number },
): Promise<ActivityRow[]> {
  const query = activity.from(db).where({ task_id: filter.taskId })
  if (filter.source !== undefined) void query.where({ source: filter.source })
  if (filter.beforeSeq !== undefined) void query.where('seq', '<', filter.beforeSeq)
  return activity.list(query.orderBy('seq', 'desc').limit(filter.limit + 1))
}

/** Returns the last entry of this kind. */
export async function findLastActivity(db: Db, of: { taskId: TaskId; kind: string }): Promise<ActivityRow | null> {
  const query = activity.from(db).where({ task_id: of.taskId, source: 'activity', kind: of.kind })
  return (await activity.list(query.orderBy('seq', 'desc').limit(1)))[0] ?? null
}
