import { z } from 'zod'
import { int, json, nullableText, text, time, toJson } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'

/** What happened to tasks. `source`: `activity`, or `git` for what a git host told. */
export const activitySources = ['activity', 'git'] as const

const row = z
  .object({
    seq: int,
    id: text,
    task_id: text,
    source: z.enum(activitySources),
    kind: text,
    actor_type: z.enum(['user', 'agent', 'system']),
    actor_id: nullableText,
    data: json(z.record(z.string(), z.unknown())),
    created_at: time,
  })
  .transform((r) => ({
    /** Grows: the order in which things happened, also within one moment. */
    seq: r.seq,
    id: r.id,
    taskId: r.task_id,
    source: r.source,
    kind: r.kind,
    actorType: r.actor_type,
    actorId: r.actor_id,
    data: r.data,
    createdAt: r.created_at,
  }))
export type ActivityRow = z.infer<typeof row>

export async function insertActivity(db: Db, entry: Omit<ActivityRow, 'seq'>): Promise<void> {
  await db('task_activity').insert({
    id: entry.id,
    task_id: entry.taskId,
    source: entry.source,
    kind: entry.kind,
    actor_type: entry.actorType,
    actor_id: entry.actorId,
    data: toJson(entry.data),
    created_at: entry.createdAt,
  })
}

/** Newest first; one row more than `limit`. */
export async function listActivity(
  db: Db,
  filter: { taskId: string; source?: ActivityRow['source']; beforeSeq?: number; limit: number },
): Promise<ActivityRow[]> {
  const query = db('task_activity').where({ task_id: filter.taskId })
  if (filter.source !== undefined) void query.where({ source: filter.source })
  if (filter.beforeSeq !== undefined) void query.where('seq', '<', filter.beforeSeq)
  const rows: unknown[] = await query.orderBy('seq', 'desc').limit(filter.limit + 1)
  return rows.map((value) => row.parse(value))
}
