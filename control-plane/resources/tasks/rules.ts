import type { ActorRef, TaskId } from '../../../shared/lib/ids.ts'
import type { TaskStatus } from '../../../shared/api/task-fields.ts'
import type { Person } from '../../trust/rules.ts'
import type { ChecklistRow } from './own/checklist-store.ts'
import type { TaskRow } from './store.ts'

// Decisions about tasks.

/**
 *   open -> in_progress, done, cancelled
 *   in_progress -> in_review, done, open, cancelled
 *   in_review -> in_progress, done, open, cancelled
 *   done, cancelled -> open, with a reason
 *
 * A task that stays where it is does not move.
 */
const transitions: Readonly<Record<TaskStatus, readonly TaskStatus[]>> = {
  open: ['in_progress', 'done', 'cancelled'],
  in_progress: ['in_review', 'done', 'open', 'cancelled'],
  in_review: ['in_progress', 'done', 'open', 'cancelled'],
  done: ['open'],
  cancelled: ['open'],
}

export const nextTaskStatuses = (from: TaskStatus): readonly TaskStatus[] => transitions[from]

export const isFinished = (task: Pick<TaskRow, 'status'>): boolean =>
  task.status === 'done' || task.status === 'cancelled'

/** The reason why a task may not move; null when it may. */
export function transitionRefusal(
  from: TaskStatus,
  to: TaskStatus,
  reason: string | null,
): 'invalid_task_transition' | 'reopen_reason_required' | null {
  if (!transitions[from].includes(to)) return 'invalid_task_transition'
  const isReopening = from === 'done' || from === 'cancelled'
  return isReopening && (reason === null || reason.trim() === '') ? 'reopen_reason_required' : null
}

/** The task after a move that may be made. */
export function taskWithStatus(task: TaskRow, to: TaskStatus, now: number): TaskRow {
  const moved = { ...task, status: to }
  return {
    ...moved,
    startedAt: to === 'in_progress' ? (task.startedAt ?? now) : task.startedAt,
    completedAt: to === 'done' ? now : null,
    cancelledAt: to === 'cancelled' ? now : null,
    // A task that is finished or has begun need not be woken at its scheduled start; one that is reopened must.
    wakeAt: wakeAtOf(moved, now),
    updatedAt: now,
  }
}

export interface Actor {
  type: 'user' | 'agent' | 'system'
  /** `usr_` or `agt_` id; null for the system. */
  id: ActorRef | null
}

export const systemActor: Actor = { type: 'system', id: null }

/** Root tasks are level 1. */
export const mostLevels = 4

/** An item of a checklist that nobody has done. */
export function newItem({ at, ...item }: Pick<ChecklistRow, 'id' | 'taskId' | 'text' | 'position'> & { at: number }) {
  const completion = { done: false, completedAt: null, completedByType: null, completedByRef: null }
  return { ...item, ...completion, archivedAt: null, createdAt: at, updatedAt: at } satisfies ChecklistRow
}

/** A task has at most this many items, subtasks or dependencies, as all are shown with it, or woken at its closing, at once. */
export const mostChecklistItems = 1_000
export const mostSubtasks = 5_000
/** Tasks that one waits for, and tasks that wait for it. */
export const mostDependencies = 500
/** Beyond these, nobody is added by hand. */
export const mostWatchers = 500

/** The reason why a task with `levels` levels may not go below a parent that has these tasks above it; null when it may. */
export function parentRefusal(move: {
  taskId: TaskId | null
  levels: number
  parentId: TaskId
  /** The ids of the tasks above the parent, the nearest first. */
  ancestors: readonly string[]
}): 'parent_task_cycle' | 'parent_task_depth_exceeded' | null {
  const { taskId, parentId, ancestors } = move
  if (taskId !== null && (parentId === taskId || ancestors.includes(taskId))) return 'parent_task_cycle'
  return ancestors.length + 1 + move.levels > mostLevels ? 'parent_task_depth_exceeded' : null
}

/** True while the work is to begin at a time that lies ahead. Work that has begun already waits for no start. */
export const startsLater = (task: Pick<TaskRow, 'startAt' | 'status'>, now: number): boolean =>
  task.status === 'open' && task.startAt !== null && task.startAt > now

/** The time at which the sweep wakes the assignee: a start that lies ahead. */
export function wakeAtOf(
  task: Pick<TaskRow, 'assigneeAgentRef' | 'startAt' | 'status' | 'archivedAt'>,
  now: number,
): number | null {
  const isWaiting = task.assigneeAgentRef !== null && task.archivedAt === null && startsLater(task, now)
  return isWaiting ? task.startAt : null
}

export type Condition =
  | { type: 'blocked'; reason: 'dependency' | 'approval' | 'question' }
  | { type: 'active_run' }
  | { type: 'scheduled'; startAt: number }

export interface ConditionFacts {
  hasOpenBlocker: boolean
  openHolds: readonly { kind: 'approval' | 'question' }[]
  isRunning: boolean
  now: number
}

/** Derived whenever a task is read; never stored. */
export function conditionsOf(
  task: Pick<TaskRow, 'assigneeAgentRef' | 'startAt' | 'status' | 'archivedAt'>,
  facts: ConditionFacts,
): Condition[] {
  const conditions: Condition[] = []
  if (facts.hasOpenBlocker) conditions.push({ type: 'blocked', reason: 'dependency' })
  for (const kind of ['approval', 'question'] as const)
    if (facts.openHolds.some((hold) => hold.kind === kind)) conditions.push({ type: 'blocked', reason: kind })
  if (facts.isRunning) conditions.push({ type: 'active_run' })
  const startAt = wakeAtOf(task, facts.now)
  if (startAt !== null) conditions.push({ type: 'scheduled', startAt })
  return conditions
}

/** The people whose words its prompt says. */
export const authorsOf = ({ titleByUuid, description, descriptionByUuid }: TaskRow): Person[] =>
  description === null || description.trim() === '' ? [titleByUuid] : [titleByUuid, descriptionByUuid]
