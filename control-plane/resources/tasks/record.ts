import type { ActorRef, ConversationId, TaskId } from '../../../shared/lib/ids.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { Db } from '../../db/open.ts'
import type { Person } from '../../trust/rules.ts'
import { recordEvent } from '../webhooks/event-store.ts'
import { insertActivity } from './activity-store.ts'
import { wakeAtOf, type Actor } from './rules.ts'
import { replaceTask, type TaskRow } from './store.ts'
import { insertWatcher, type WatcherRow } from './own/watcher-store.ts'

// Changes of a task from which nothing follows for its runs; the start of a run uses them, too.

/** Puts the task into the archive, or takes it out. */
export async function setArchived(
  tx: Db,
  change: { task: TaskRow; archivedAt: number | null; actor: Actor; world: World },
): Promise<TaskRow> {
  const { task, archivedAt, actor, world } = change
  const after = { ...task, archivedAt, updatedAt: world.now() }
  const stored = await replaceTask(tx, task, { ...after, wakeAt: wakeAtOf(after, world.now()) })
  const kind = archivedAt === null ? 'task.unarchived' : 'task.archived'
  await recordActivity(tx, { taskId: task.id, kind, actor, data: {}, world })
  return stored
}

export interface Activity {
  taskId: TaskId
  /** A dotted name in the past: `task.created`. What a git host told begins with `git.`. */
  kind: string
  actor: Actor
  data: Record<string, unknown>
  world: World
}

export async function recordActivity(tx: Db, activity: Activity): Promise<void> {
  await insertActivity(tx, entryOf(activity))
}

/** Records activities of many tasks at once. */
export async function recordOfAll(tx: Db, activities: readonly Activity[]): Promise<void> {
  await insertActivity(tx, activities.map(entryOf))
}

/** Records for webhooks that the status of a task is another one. */
export async function recordStatusChanged(
  tx: Db,
  { id, workspaceId, status: to }: TaskRow,
  { from, world }: { from: TaskRow['status']; world: World },
): Promise<void> {
  await recordEvent(tx, { type: 'task.status_changed', workspaceId, subjectId: id, change: { from, to }, world })
}

const entryOf = ({ taskId, kind, actor, data, world }: Activity) => ({
  id: world.id('act_'),
  taskId,
  source: kind.startsWith('git.') ? ('git' as const) : ('activity' as const),
  kind,
  actorType: actor.type,
  actorRef: actor.id,
  data,
  createdAt: world.now(),
})

/** Makes somebody a watcher; whoever watches already stays as they are. */
export async function watchTask(
  tx: Db,
  watch: {
    taskId: TaskId
    subject: { type: 'user' | 'agent'; id: ActorRef }
    addedBy: WatcherRow['addedBy']
    /** `tsk_` or `cnv_` id where an agent is woken; null: it is not. */
    origin: ConversationId | TaskId | null
    /** UUID of the person who has it watch; needed where an agent is woken. */
    askedBy?: Person
    world: World
  },
): Promise<void> {
  await insertWatcher(tx, {
    taskId: watch.taskId,
    subjectType: watch.subject.type,
    subjectRef: watch.subject.id,
    addedBy: watch.addedBy,
    origin: watch.origin,
    askedByUuid: watch.askedBy ?? null,
    createdAt: watch.world.now(),
  })
}
