import { fail } from '../../../shared/api/errors.ts'
import type { Db } from '../../db/open.ts'
import type { Caller } from '../../http/callers.ts'
import { isVisible, projectViewerOf } from '../projects/rules.ts'
import { findProject, hasGrant } from '../projects/store.ts'
import { findRun } from '../runs/store.ts'
import { findTask, findTaskById, type TaskRow } from './store.ts'

/**
 * Finds the task that a `tsk_` id, key or `current` (the task of the calling run) names; null when there is no such task
 * or the caller may not see it.
 */
export async function lookUpTask(db: Db, caller: Caller, reference: string): Promise<TaskRow | null> {
  const task = await named(db, caller, reference)
  return task !== null && (await isTaskVisible(db, caller, task)) ? task : null
}

async function named(db: Db, caller: Caller, reference: string): Promise<TaskRow | null> {
  if (reference !== 'current') return findTask(db, caller.workspaceId, reference)
  const run = caller.kind === 'agent' ? await findRun(db, caller.runId) : null
  return run?.taskId == null ? null : findTaskById(db, run.taskId)
}

type Seen = Pick<TaskRow, 'projectId' | 'assigneeAgentId' | 'workspaceId'>

/** A task is seen by who sees its project; one without a project by all; and by the agent it is assigned to. */
export async function isTaskVisible(db: Db, caller: Caller, task: Seen): Promise<boolean> {
  if (caller.kind === 'agent' && task.assigneeAgentId === caller.agentId) return true
  if (task.projectId === null) return true
  const project = await findProject(db, task.workspaceId, task.projectId)
  if (project === null) return true
  const isGranted =
    caller.kind === 'agent' && project.visibility === 'private' && (await hasGrant(db, project.id, caller.agentId))
  return isVisible(project, projectViewerOf(caller), isGranted)
}

/** Returns the tasks that the caller may see, in their order. A project is looked up once for all of its tasks. */
export async function visibleTasks<Task extends Seen>(db: Db, caller: Caller, tasks: readonly Task[]): Promise<Task[]> {
  const ofProjects = new Map<string | null, boolean>()
  const isOwn = (task: Seen) => caller.kind === 'agent' && task.assigneeAgentId === caller.agentId
  for (const task of tasks)
    if (!isOwn(task) && !ofProjects.has(task.projectId))
      ofProjects.set(task.projectId, await isTaskVisible(db, caller, task))
  return tasks.filter((task) => isOwn(task) || ofProjects.get(task.projectId) === true)
}

/** The task, or `task_not_found`. */
export async function readableTask(db: Db, caller: Caller, reference: string): Promise<TaskRow> {
  return (await lookUpTask(db, caller, reference)) ?? unknownTask(reference)
}

/** The same, locked until the transaction ends: what is read of it stays so. */
export async function changeableTask(db: Db, caller: Caller, reference: string): Promise<TaskRow> {
  const task = await readableTask(db, caller, reference)
  return (await findTaskById(db, task.id, true)) ?? unknownTask(reference)
}

export function unknownTask(reference: string): never {
  const message = reference === 'current' ? '`current` names a task only within a run that works on one.' : undefined
  return fail('task_not_found', { param: 'id', ...(message === undefined ? {} : { message }) })
}
