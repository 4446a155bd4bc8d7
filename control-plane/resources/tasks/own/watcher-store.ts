import type { ActorRef, TaskId } from '../../../../shared/lib/ids.ts'
import { z } from 'zod'
import { time } from '../../../db/columns.ts'
import { actorRef, origin, personUuid, taskId } from '../../../db/id-columns.ts'
import type { Db } from '../../../db/open.ts'
import { countOf } from '../../../db/reads.ts'
import { table, type RowOf } from '../../../db/table.ts'

// Watchers of tasks, and up to when each reader has read them.

const watchers = table(
  'task_watchers',
  {
    taskId,
    subjectType: z.enum(['user', 'agent']),
    /** `usr_` or `agt_` id. */
    subjectRef: actorRef,
    addedBy: z.enum(['auto', 'manual']),
    /** `tsk_` or `cnv_` id: where an agent is woken; null: nowhere. */
    origin: origin.nullable(),
    /** UUID of the person who had it watch; null: not known. */
    askedByUuid: personUuid.nullable(),
    createdAt: time,
  },
  { columns: { subjectRef: 'subject_id', askedByUuid: 'asked_by_user_id' } },
)
export type WatcherRow = RowOf<typeof watchers>

/** False when the subject watches already; its row stays as it was. */
export async function insertWatcher(db: Db, watcher: WatcherRow): Promise<boolean> {
  return watchers.insertNew(db, watcher, ['taskId', 'subjectType', 'subjectRef'])
}

type Key = Pick<WatcherRow, 'taskId' | 'subjectType' | 'subjectRef'>
const where = ({ taskId, subjectType, subjectRef }: Key) => watchers.toColumns({ taskId, subjectType, subjectRef })

export async function findWatcher(db: Db, key: Key): Promise<WatcherRow | null> {
  return watchers.first(watchers.from(db).where(where(key)))
}

/** Somebody who watched without being asked to, now does because somebody said so. */
export async function replaceWatcher(db: Db, watcher: WatcherRow): Promise<void> {
  await db('task_watchers')
    .where(where(watcher))
    .update({ added_by: watcher.addedBy, origin: watcher.origin, asked_by_user_id: watcher.askedByUuid })
}

export async function removeWatcher(db: Db, key: Key): Promise<boolean> {
  return (await db('task_watchers').where(where(key)).delete()) === 1
}

/** First added first. */
export async function listWatchers(db: Db, taskId: TaskId): Promise<WatcherRow[]> {
  return watchers.list(watchers.from(db).where({ task_id: taskId }).orderBy(['created_at', 'subject_id']))
}

export async function countWatchers(db: Db, taskId: TaskId): Promise<number> {
  return countOf(db('task_watchers').where({ task_id: taskId }))
}

export interface Reader {
  taskId: TaskId
  readerType: 'user' | 'agent'
  readerRef: ActorRef
}

export async function replaceReadMark(db: Db, reader: Reader, at: number): Promise<void> {
  await db('task_reads')
    .insert({
      task_id: reader.taskId,
      reader_type: reader.readerType,
      reader_id: reader.readerRef,
      last_read_at: at,
    })
    .onConflict(['task_id', 'reader_type', 'reader_id'])
    .merge(['last_read_at'])
}
