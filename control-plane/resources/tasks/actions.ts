import { fail } from '../../../shared/api/errors.ts'
import type { TaskStatus } from '../../../shared/api/task-fields.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { Db, Tx } from '../../db/open.ts'
import { cancelRun } from '../../dispatch/cancel-run.ts'
import { listLiveOfTask } from '../runs/store.ts'
import { insertActivity } from './activity-store.ts'
import { isFinished, nextStatuses, transitionRefusal, withStatus, type Actor } from './rules.ts'
import { findTaskById, replaceTask, type TaskRow } from './store.ts'
import { wakeForFanIn, wakeForResolvedDependency, wakeWatchers } from './wakes.ts'
import { insertWatcher, type WatcherRow } from './watcher-store.ts'

/** What is done to tasks by several parts: the routes of tasks, comments, pull requests, runs. */

export interface Move {
  task: TaskRow
  to: TaskStatus
  /** Needed to reopen. */
  reason: string | null
  actor: Actor
  world: World
}

/**
 * Moves the task by the table of transitions, with all that follows from it. Fails with `invalid_task_transition` (also
 * when its status is no longer that of `task`) and `reopen_reason_required`.
 */
export async function transitionTask(tx: Db, move: Move): Promise<TaskRow> {
  const { task, to, actor, world } = move
  check(task, move)
  // Runs before tasks, in the order in which the start of a run takes them.
  if (to === 'done' || to === 'cancelled') await cancelWaitingRuns(tx, { task, world, reason: `The task is ${to}.` })
  const before = await findTaskById(tx, task.id, true)
  if (before === null || before.status !== task.status) return refuse(before ?? task)
  const moved = await storeTask(tx, before, withStatus(before, to, world.now()))
  const { reason } = move
  const data = { from: before.status, to, ...(reason === null ? {} : { reason }) }
  await recordActivity(tx, { taskId: task.id, kind: 'task.status_changed', actor, data, world })
  if (isFinished(moved)) {
    await wakeForFanIn(tx, { task: moved, actor, world })
    await wakeForResolvedDependency(tx, { task: moved, actor, world })
  }
  // That work began is no news worth a run.
  if (to !== 'in_progress') await wakeWatchers(tx, { task: moved, what: sentenceOf(moved, move), actor, world })
  return moved
}

function check(task: TaskRow, { to, reason }: Move): void {
  const refusal = transitionRefusal(task.status, to, reason)
  if (refusal === 'invalid_task_transition') refuse(task)
  if (refusal !== null) fail(refusal, { param: 'reason' })
}

function refuse(task: TaskRow): never {
  return fail('invalid_task_transition', {
    param: 'status',
    message: `${task.key} is ${task.status}; it cannot move there.`,
    allowedValues: nextStatuses(task.status),
  })
}

const sentenceOf = (task: TaskRow, { reason }: Move) =>
  `${task.key} is ${task.status} now${reason === null ? '.' : `: ${reason}`}`

/** Opens a finished task again and takes it out of the archive; the reason is the comment that asks for it. */
export async function reopenTask(tx: Db, reopening: Omit<Move, 'to'>): Promise<TaskRow> {
  const open = await transitionTask(tx, { ...reopening, to: 'open' })
  return open.archivedAt === null ? open : setArchived(tx, { ...reopening, task: open, archivedAt: null })
}

/** Puts the task into the archive, or takes it out. */
export async function setArchived(
  tx: Db,
  change: { task: TaskRow; archivedAt: number | null; actor: Actor; world: World },
): Promise<TaskRow> {
  const { task, archivedAt, actor, world } = change
  const after = { ...task, archivedAt, wakeAt: archivedAt === null ? task.wakeAt : null, updatedAt: world.now() }
  const stored = await storeTask(tx, task, after)
  const kind = archivedAt === null ? 'task.unarchived' : 'task.archived'
  await recordActivity(tx, { taskId: task.id, kind, actor, data: {}, world })
  return stored
}

/** Writes the changed task; gives it as it is now. Fails with `transient_conflict` when somebody else wrote in between. */
export async function storeTask(tx: Db, before: TaskRow, after: TaskRow): Promise<TaskRow> {
  if (!(await replaceTask(tx, before, after))) fail('transient_conflict')
  return { ...after, version: before.version + 1 }
}

/** Runs of the task that no device executes yet are ended: what they were to do is no longer asked for. */
export async function cancelWaitingRuns(
  tx: Db,
  { task, world, reason }: { task: Pick<TaskRow, 'id'>; world: World; reason: string },
): Promise<void> {
  for (const run of await listLiveOfTask(tx, task.id)) {
    if (run.status !== 'queued') continue
    // A run that waits has no device to be asked, so how long a lease lasts does not matter.
    await cancelRun(tx as Tx, run, { exitReason: 'duplicate_trigger', reason, world, leaseMs: 0 })
  }
}

export interface Activity {
  taskId: string
  /** In the past, dotted: `task.created`. What a git host told begins with `git.`. */
  kind: string
  actor: Actor
  data: Record<string, unknown>
  world: World
}

export async function recordActivity(tx: Db, { taskId, kind, actor, data, world }: Activity): Promise<void> {
  await insertActivity(tx, {
    id: world.id('act_'),
    taskId,
    source: kind.startsWith('git.') ? 'git' : 'activity',
    kind,
    actorType: actor.type,
    actorId: actor.id,
    data,
    createdAt: world.now(),
  })
}

/** Makes somebody a watcher; whoever watches already stays as they are. */
export async function watchTask(
  tx: Db,
  watch: {
    taskId: string
    subject: { type: 'user' | 'agent'; id: string }
    addedBy: WatcherRow['addedBy']
    /** `tsk_` or `cnv_` id where an agent is woken; null: it is not. */
    origin: string | null
    world: World
  },
): Promise<void> {
  await insertWatcher(tx, {
    taskId: watch.taskId,
    subjectType: watch.subject.type,
    subjectId: watch.subject.id,
    addedBy: watch.addedBy,
    origin: watch.origin,
    createdAt: watch.world.now(),
  })
}
