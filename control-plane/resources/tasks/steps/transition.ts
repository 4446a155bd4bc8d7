import type { RunId } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { TaskStatus } from '../../../../shared/api/task-fields.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Db, Tx } from '../../../db/open.ts'
import { cancelRun } from '../../../run/endings/cancel-run.ts'
import { loadSpeaker } from '../../conversations/names.ts'
import { causeOf } from '../../runs/cause.ts'
import { listLiveOfTask } from '../../runs/live-store.ts'
import { recordActivity, recordStatusChanged, setArchived } from '../record.ts'
import { isFinished, nextTaskStatuses, transitionRefusal, taskWithStatus, type Actor } from '../rules.ts'
import { replaceTask, findTaskById, lockClosing, type TaskRow } from '../store.ts'
import { wakeForFanIn, wakeForResolvedDependency, wakeWatchers, type TaskRemark } from './wakes.ts'

// Status changes of tasks, which several parts make: routes of tasks and comments, pull requests, runs.

export interface Move {
  task: TaskRow
  to: TaskStatus
  /** Needed to reopen. */
  reason: string | null
  actor: Actor
  /** The run that asks for it. */
  byRunId?: RunId | null
  world: World
}

/**
 * Moves the task by the table of transitions, with all that follows from it. Fails with `invalid_task_transition` (also
 * when its status is no longer that of `task`) and `reopen_reason_required`.
 */
export async function transitionTask(tx: Tx, move: Move): Promise<TaskRow> {
  const { task, to, actor, world } = move
  check(task, move)
  // Runs before tasks, in the order in which the start of a run takes them.
  if (to === 'done' || to === 'cancelled') await cancelWaitingRuns(tx, { task, world, reason: `The task is ${to}.` })
  const before = await findTaskById(tx, task.id, true)
  if (before === null || before.status !== task.status) return refuse(before ?? task)
  const moved = await replaceTask(tx, before, taskWithStatus(before, to, world.now()))
  const { reason, byRunId: runId = null } = move
  const data = { from: before.status, to, ...(reason !== null && { reason }), ...(runId !== null && { runId }) }
  await recordActivity(tx, { taskId: task.id, kind: 'task.status_changed', actor, data, world })
  await recordStatusChanged(tx, moved, { from: before.status, world })
  if (isFinished(moved)) {
    await lockClosing(tx, moved.workspaceId)
    await wakeForFanIn(tx, { task: moved, actor, world })
    await wakeForResolvedDependency(tx, { task: moved, actor, world })
  }
  // Nobody is woken because work began.
  if (to !== 'in_progress') {
    const said = reason === null ? {} : { said: await reasonOf(tx, moved, { reason, actor }) }
    await wakeWatchers(tx, { task: moved, what: `${moved.key} is ${moved.status} now.`, actor, world, ...said })
  }
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
    allowedValues: nextTaskStatuses(task.status),
  })
}

/** Returns why somebody moved the task, for the prompts that quote it. */
export async function reasonOf(
  tx: Db,
  { key, workspaceId }: TaskRow,
  { reason, actor }: { reason: string; actor: Actor },
): Promise<TaskRemark> {
  const by = await loadSpeaker(tx, workspaceId, actor)
  return { what: `reason of the change of ${key}`, by, text: reason, asker: await causeOf(tx, actor.id) }
}

/** Opens a finished task again and takes it out of the archive; the reason is the comment that asks for it. */
export async function reopenTask(tx: Tx, reopening: Omit<Move, 'to'>): Promise<TaskRow> {
  const open = await transitionTask(tx, { ...reopening, to: 'open' })
  return open.archivedAt === null ? open : setArchived(tx, { ...reopening, task: open, archivedAt: null })
}

/** Wakes to take up the work; others (comments, mentions) are still to be answered when the work is done or another's. */
const workTriggers: readonly string[] = ['assignment', 'fan_in', 'dependency_resolved']

/** Runs that were to take up the task and that no device executes yet are ended: that is no longer asked for. */
export async function cancelWaitingRuns(
  tx: Tx,
  { task, world, reason }: { task: Pick<TaskRow, 'id'>; world: World; reason: string },
): Promise<void> {
  for (const run of await listLiveOfTask(tx, task.id)) {
    if (run.status !== 'queued' || !workTriggers.includes(run.triggerSource)) continue
    // A run that waits has no device to be asked, so how long a lease lasts does not matter.
    await cancelRun(tx, run, { exitReason: 'duplicate_trigger', reason, world, leaseMs: 0 })
  }
}
