import { z } from 'zod'
import { nullableText, text, time } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'

/** Who is told of a task, and who has read it up to when. */

const row = z
  .object({
    task_id: text,
    subject_type: z.enum(['user', 'agent']),
    subject_id: text,
    added_by: z.enum(['auto', 'manual']),
    origin: nullableText,
    created_at: time,
  })
  .transform((r) => ({
    taskId: r.task_id,
    subjectType: r.subject_type,
    /** `usr_` or `agt_` id. */
    subjectId: r.subject_id,
    addedBy: r.added_by,
    /** `tsk_` or `cnv_` id: where an agent is woken; null: nowhere. */
    origin: r.origin,
    createdAt: r.created_at,
  }))
export type WatcherRow = z.infer<typeof row>

/** False when the subject watches already; its row stays as it was. */
export async function insertWatcher(db: Db, watcher: WatcherRow): Promise<boolean> {
  const inserted: unknown[] = await db('task_watchers')
    .insert({
      task_id: watcher.taskId,
      subject_type: watcher.subjectType,
      subject_id: watcher.subjectId,
      added_by: watcher.addedBy,
      origin: watcher.origin,
      created_at: watcher.createdAt,
    })
    .onConflict(['task_id', 'subject_type', 'subject_id'])
    .ignore()
    .returning('task_id')
  return inserted.length === 1
}

type Key = Pick<WatcherRow, 'taskId' | 'subjectType' | 'subjectId'>
const where = (key: Key) => ({ task_id: key.taskId, subject_type: key.subjectType, subject_id: key.subjectId })

export async function findWatcher(db: Db, key: Key): Promise<WatcherRow | null> {
  const found: unknown = await db('task_watchers').where(where(key)).first()
  return found === undefined ? null : row.parse(found)
}

/** Somebody who watched without being asked to, now does because somebody said so. */
export async function replaceWatcher(db: Db, watcher: WatcherRow): Promise<void> {
  await db('task_watchers').where(where(watcher)).update({ added_by: watcher.addedBy, origin: watcher.origin })
}

export async function removeWatcher(db: Db, key: Key): Promise<boolean> {
  return (await db('task_watchers').where(where(key)).delete()) === 1
}

/** First added first. */
export async function listWatchers(db: Db, taskId: string): Promise<WatcherRow[]> {
  const rows: unknown[] = await db('task_watchers')
    .where({ task_id: taskId })
    .orderBy([{ column: 'created_at' }, { column: 'subject_id' }])
  return rows.map((value) => row.parse(value))
}

export interface Reader {
  taskId: string
  readerType: 'user' | 'agent'
  readerId: string
}

export async function replaceReadMark(db: Db, reader: Reader, at: number): Promise<void> {
  await db('task_reads')
    .insert({
      task_id: reader.taskId,
      reader_type: reader.readerType,
      reader_id: reader.readerId,
      last_read_at: at,
    })
    .onConflict(['task_id', 'reader_type', 'reader_id'])
    .merge(['last_read_at'])
}

export async function findReadMark(db: Db, reader: Reader): Promise<number | null> {
  const found: unknown = await db('task_reads')
    .where({ task_id: reader.taskId, reader_type: reader.readerType, reader_id: reader.readerId })
    .first('last_read_at')
  return found === undefined ? null : z.object({ last_read_at: time }).parse(found).last_read_at
}
