import { toTimestamp } from '../../../shared/api/ids.ts'
import type {
  ChecklistItem,
  Task,
  TaskDependencies,
  TaskDependency,
  TaskSummary,
  TaskWatcher,
} from '../../../shared/api/task-shapes.ts'
import { toProjectRef } from '../../../shared/lib/project-ref.ts'
import type { Db } from '../../db/open.ts'
import { inQuotes, nameOf, onOneLine, quoted, type Quoted } from '../../trust/quote.ts'
import type { Person } from '../../trust/rules.ts'
import { openHoldsOfTasks, type OpenHold } from '../approvals/open-holds.ts'
import { listLiveOfTasks } from '../runs/live-store.ts'
import { listChecklists, type ChecklistRow } from './own/checklist-store.ts'
import type { DependencyRow, LinkedTask } from './own/dependency-store.ts'
import type { AuthorOf } from './authors.ts'
import { conditionsOf, type Condition } from './rules.ts'
import { listBlockedTasks, type BriefTask, type TaskRow } from './store.ts'
import type { WatcherRow } from './own/watcher-store.ts'

// Shows tasks to clients. Everything a page of tasks needs beside its rows is loaded once for all of them.

/** The most items of a checklist in a response, and of all checklists of a page. */
const mostItems = { ofEach: 200, inAll: 2_000 }

interface Surroundings {
  checklists: ReadonlyMap<string, ChecklistRow[]>
  blocked: ReadonlySet<string>
  holds: ReadonlyMap<string, readonly OpenHold[]>
  running: ReadonlySet<string>
  now: number
}

async function load(db: Db, tasks: readonly TaskRow[], now: number): Promise<Surroundings> {
  const ids = tasks.map((task) => task.id)
  const live = await listLiveOfTasks(db, ids)
  return {
    checklists: await listChecklists(db, ids, mostItems),
    blocked: await listBlockedTasks(db, ids),
    holds: await openHoldsOfTasks(db, ids),
    running: new Set(live.filter((run) => run.status === 'running').map((run) => run.taskId ?? '')),
    now,
  }
}

export async function presentTasks(
  db: Db,
  tasks: readonly TaskRow[],
  { now, withDescription }: { now: number; withDescription: boolean },
): Promise<Task[]> {
  const around = await load(db, tasks, now)
  return tasks.map((task) => {
    const shown = presentOne(task, around)
    return withDescription ? { ...shown, description: task.description } : shown
  })
}

/** Shows one task with its description. */
export async function presentTask(db: Db, task: TaskRow, now: number): Promise<Task> {
  const [shown] = await presentTasks(db, [task], { now, withDescription: true })
  return shown!
}

function presentOne(task: TaskRow, around: Surroundings): Task {
  const facts = {
    hasOpenBlocker: around.blocked.has(task.id),
    openHolds: around.holds.get(task.id) ?? [],
    isRunning: around.running.has(task.id),
    now: around.now,
  }
  return {
    object: 'task',
    id: task.id,
    key: task.key,
    workspaceId: task.workspaceId,
    projectId: task.projectId === null ? null : toProjectRef(task.projectId),
    parentTaskId: task.parentTaskId,
    goalId: task.goalId,
    workflowRef: task.workflowRef,
    title: task.title,
    checklist: (around.checklists.get(task.id) ?? []).map(presentItem),
    status: task.status,
    conditions: conditionsOf(task, facts).map(presentCondition),
    assignee: assigneeOf(task),
    priority: task.priority,
    createdBy: { type: task.createdByType, id: task.createdByRef },
    ...timesOf(task),
    branchName: task.branchName,
    repoId: task.repoId,
    baseBranch: task.baseBranch,
    pullRequest: task.pullRequest,
    environment: task.environment,
    harness: task.harness,
    modelId: task.modelId,
    reasoningEffort: task.reasoningEffort,
    sandboxSize: task.sandboxSize,
  }
}

const timesOf = (task: TaskRow) => ({
  dueAt: toTimestamp(task.dueAt),
  startAt: toTimestamp(task.startAt),
  startedAt: toTimestamp(task.startedAt),
  completedAt: toTimestamp(task.completedAt),
  cancelledAt: toTimestamp(task.cancelledAt),
  archivedAt: toTimestamp(task.archivedAt),
  createdAt: toTimestamp(task.createdAt),
  updatedAt: toTimestamp(task.updatedAt),
})

const assigneeOf = ({ assigneeAgentRef: id }: BriefTask) => (id === null ? null : { type: 'agent' as const, id })

const presentCondition = (condition: Condition) =>
  condition.type === 'scheduled' ? { ...condition, startAt: toTimestamp(condition.startAt) } : condition

export function presentItem(item: ChecklistRow): ChecklistItem {
  const { completedByType: type, completedByRef } = item
  return {
    id: item.id,
    text: item.text,
    done: item.done,
    completedAt: toTimestamp(item.completedAt),
    completedBy: type === null ? null : { type, id: completedByRef ?? '' },
  }
}

export const presentTaskSummary = (task: BriefTask): TaskSummary => ({
  id: task.id,
  key: task.key,
  title: task.title,
  status: task.status,
  priority: task.priority,
  assignee: assigneeOf(task),
})

export const presentDependency = (dependency: DependencyRow): TaskDependency => ({
  ...dependency,
  createdAt: toTimestamp(dependency.createdAt),
})

export function presentDependencies(
  blockedBy: readonly LinkedTask[],
  blocking: readonly LinkedTask[],
): TaskDependencies {
  const shown = ({ task, type, createdAt }: LinkedTask) => ({
    ...presentTaskSummary(task),
    type,
    createdAt: toTimestamp(createdAt),
  })
  return { blockedBy: blockedBy.map(shown), blocking: blocking.map(shown) }
}

export const presentWatcher = (watcher: WatcherRow): TaskWatcher => ({
  subject: { type: watcher.subjectType, id: watcher.subjectRef },
  addedBy: watcher.addedBy,
  origin: watcher.origin,
  createdAt: toTimestamp(watcher.createdAt),
})

export interface TaskPrompt {
  /** A sentence of ours, or the words of whoever starts the run. What others say in it is quoted. */
  reason: string
  /** Goes below the task. */
  extra?: string
  authorOf: AuthorOf
  /** The person who asks for the work beside whoever assigned the task. */
  askedBy?: Person
  /** The task is another agent's: nothing in it is for this one to do. */
  isWatched?: boolean
  /** The workflow of which the run is one step, so that the end of the task is not the agent's to say. */
  stepOf?: string
}

/** The prompt of an agent that is woken for a task. */
export function taskPrompt(task: TaskRow, { reason, extra = '', stepOf, ...about }: TaskPrompt): string {
  const { titleByUuid: titleBy, descriptionByUuid: by, description } = task
  const facts = [
    `Title by: ${nameOf(about.authorOf(titleBy))}`,
    `Status: ${task.status}`,
    `Priority: ${task.priority}`,
    ...(task.dueAt === null ? [] : [`Due: ${toTimestamp(task.dueAt)}`]),
    ...(task.branchName === null ? [] : [`Branch: ${onOneLine(task.branchName)}`]),
    ...(task.baseBranch === null ? [] : [`Base branch: ${onOneLine(task.baseBranch)}`]),
  ]
  const parts = [
    reason,
    `Task ${task.key}: ${inQuotes(task.title)}\n${facts.join('\n')}`,
    ...(description === null || description.trim() === ''
      ? []
      : [
          quoted({
            as: askedAs(task, about),
            what: `description of ${task.key}`,
            by: about.authorOf(by),
            text: description,
          }),
        ]),
    ...(extra === '' ? [] : [extra]),
    ...(stepOf === undefined ? ofWholeTask(task) : ofStep(task, stepOf)),
  ]
  return parts.join('\n\n')
}

const ofWholeTask = ({ key }: TaskRow) => [
  `The start of this run moved the task to in_progress if it was open; you need not.`,
  `Read it with \`svc task get ${key} --include comments\`. When it is done, say so with \`svc task transition ${key} --status done\`.`,
]

const ofStep = ({ key }: TaskRow, workflow: string) => [
  `This run is one step of the workflow ${workflow}. Do what is asked at the top, and end; the workflow goes on with your result, and other steps may follow. Read the task with \`svc task get ${key} --include comments\`. Leave its status as it is, unless what is asked at the top says otherwise: this step is not the whole task.`,
]

/** Words are a request where whoever asked for the work wrote them. */
function askedAs(
  { assignedByUuid, descriptionByUuid: by }: TaskRow,
  { askedBy = null, isWatched = false }: Pick<TaskPrompt, 'askedBy' | 'isWatched'>,
): Quoted['as'] {
  if (isWatched) return 'information'
  return by !== null && (by === assignedByUuid || by === askedBy) ? 'request' : 'work'
}
