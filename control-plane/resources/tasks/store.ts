import { hasPrefix, type AgentRef, type TaskId, type WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { z } from 'zod'
import { taskPriorities, taskStatuses } from '../../../shared/api/task-fields.ts'
import { harnessNames } from '../../../shared/runs/harnesses.ts'
import { reasoningEfforts } from '../../../shared/runs/spec.ts'
import { int, nullableJson, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import { actorRef, agentRef, personUuid, projectUuid, repoUuid, taskId, workspaceUuid } from '../../db/id-columns.ts'
import { lockName, lockRows } from '../../db/dialect.ts'
import type { Db } from '../../db/open.ts'
import { countOf } from '../../db/reads.ts'
import { inKeptWorkspace } from '../../db/removed.ts'
import { table, type RowOf } from '../../db/table.ts'
import { sortedTitleWords } from './own/duplicates.ts'

export const pullRequest = z.object({ number: z.number().int(), url: z.string() })

export const tasks = table(
  'tasks',
  {
    id: taskId,
    workspaceId: workspaceUuid,
    key: text,
    /** UUID. */
    projectId: projectUuid.nullable(),
    parentTaskId: taskId.nullable(),
    goalId: nullableText,
    workflowRef: nullableText,
    title: text,
    description: nullableText,
    status: z.enum(taskStatuses),
    /** `agt_` id. */
    assigneeAgentRef: agentRef.nullable(),
    /** UUIDs of the people behind its assignment, its title and its description; null: not known. */
    assignedByUuid: personUuid.nullable(),
    titleByUuid: personUuid.nullable(),
    descriptionByUuid: personUuid.nullable(),
    priority: z.enum(taskPriorities),
    dueAt: nullableTime,
    startAt: nullableTime,
    /** The time at which the sweep wakes the assignee for a scheduled start; null: none is scheduled. */
    wakeAt: nullableTime,
    branchName: nullableText,
    repoId: repoUuid.nullable(),
    baseBranch: nullableText,
    pullRequest: nullableJson(pullRequest),
    environment: z.enum(['device', 'cloud']).nullable(),
    harness: z.enum(harnessNames).nullable(),
    modelId: nullableText,
    reasoningEffort: z.enum(reasoningEfforts).nullable(),
    sandboxSize: z.enum(['small', 'medium', 'large']).nullable(),
    createdByType: z.enum(['user', 'agent', 'system']),
    /** `usr_` or `agt_` id; null for the system. */
    createdByRef: actorRef.nullable(),
    startedAt: nullableTime,
    completedAt: nullableTime,
    cancelledAt: nullableTime,
    archivedAt: nullableTime,
    version: int,
    createdAt: time,
    updatedAt: time,
  },
  {
    columns: {
      assigneeAgentRef: 'assignee_agent_id',
      assignedByUuid: 'assigned_by_user_id',
      titleByUuid: 'title_by_user_id',
      descriptionByUuid: 'description_by_user_id',
      createdByRef: 'created_by_id',
    },
  },
)
export type TaskRow = RowOf<typeof tasks>

const { id, workspaceId, projectId, key, title, status, assigneeAgentRef, priority } = tasks.columns
/**
 * The fields of tasks that are listed beside another one. There may be thousands of them, whose descriptions together would
 * not fit into memory.
 */
export const briefTasks = table(
  'tasks',
  { id, workspaceId, projectId, key, title, status, assigneeAgentRef, priority },
  { columns: tasks.named },
)
export type BriefTask = RowOf<typeof briefTasks>

const finished = ['done', 'cancelled']
const unfinished = taskStatuses.filter((status) => !finished.includes(status))

const counter = z.object({ issue_prefix: text, issue_counter: int })

/**
 * The next number of the workspace's task keys, with its prefix. Whoever takes one holds the workspace until its
 * transaction ends, so a number that is rolled back is taken again: no gaps, no doubles.
 */
export async function claimTaskKey(db: Db, workspaceId: WorkspaceUuid): Promise<{ key: string } | null> {
  const changed: unknown[] = await db('workspaces')
    .where({ id: workspaceId })
    .increment('issue_counter', 1)
    .returning(['issue_prefix', 'issue_counter'])
  if (changed.length === 0) return null
  const { issue_prefix, issue_counter } = counter.parse(changed[0])
  return { key: `${issue_prefix}-${issue_counter}` }
}

/** Throws the database's unique violation when the key is another task's. */
export async function insertTask(db: Db, task: TaskRow): Promise<void> {
  await db('tasks').insert({ ...tasks.toColumns({ ...task, version: 1 }), title_words: sortedTitleWords(task.title) })
}

/**
 * Writes the whole row. Fails with `transient_conflict` when
 * somebody else changed it since it was read.
 */
export async function replaceTask(db: Db, before: TaskRow, after: TaskRow): Promise<TaskRow> {
  await tasks.replace(db, before, after, { title_words: sortedTitleWords(after.title) })
  return { ...after, version: before.version + 1 }
}

/** Finds a task by `tsk_` id or key (in any case) within a workspace. */
export async function findTask(db: Db, workspaceId: WorkspaceUuid, reference: string): Promise<TaskRow | null> {
  const by = hasPrefix(reference, 'tsk_') ? { id: reference } : { key: reference.toUpperCase() }
  return tasks.find(db, { workspaceId, ...by })
}

/** Finds a task; with `lock`, nobody else changes it until the transaction ends. */
export async function findTaskById(db: Db, id: TaskId, lock = false): Promise<TaskRow | null> {
  const query = tasks.from(db).where({ id })
  return tasks.first(lock ? lockRows(query) : query)
}

export async function listTasksByIds(db: Db, workspaceId: WorkspaceUuid, ids: readonly TaskId[]): Promise<TaskRow[]> {
  if (ids.length === 0) return []
  return tasks.list(
    tasks
      .from(db)
      .where({ workspace_id: workspaceId })
      .whereIn('id', [...new Set(ids)]),
  )
}

/** Lists tasks by ids or keys, for batch reads. */
export async function listTasksByReferences(
  db: Db,
  workspaceId: WorkspaceUuid,
  references: readonly string[],
): Promise<TaskRow[]> {
  return references.length === 0 ? [] : tasks.list(byReferences(tasks.from(db), workspaceId, references))
}

/** Lists tasks by ids or keys, without what the tasks say. */
export async function listBriefByReferences(
  db: Db,
  workspaceId: WorkspaceUuid,
  references: readonly string[],
): Promise<BriefTask[]> {
  return references.length === 0 ? [] : briefTasks.list(byReferences(briefTasks.from(db), workspaceId, references))
}

function byReferences(
  query: Knex.QueryBuilder,
  workspaceId: WorkspaceUuid,
  references: readonly string[],
): Knex.QueryBuilder {
  const keys = references.map((reference) => reference.toUpperCase())
  return query
    .where({ workspace_id: workspaceId })
    .where((any) => void any.whereIn('id', [...references]).orWhereIn('key', keys))
}

/** Direct subtasks, oldest first; archived ones too. */
export async function listSubtasks(db: Db, parentTaskId: TaskId): Promise<BriefTask[]> {
  return briefTasks.list(briefTasks.from(db).where({ parent_task_id: parentTaskId }).orderBy(['created_at', 'id']))
}

/** Direct subtasks; finished and archived ones too. */
export async function countSubtasks(db: Db, parentTaskId: TaskId): Promise<number> {
  return countOf(db('tasks').where({ parent_task_id: parentTaskId }))
}

/** True when the parent has a subtask that is neither finished nor archived. */
export async function hasOpenSubtask(db: Db, parentTaskId: TaskId): Promise<boolean> {
  const found: unknown = await db('tasks')
    .where({ parent_task_id: parentTaskId })
    .whereNotIn('status', finished)
    .whereNull('archived_at')
    .first('id')
  return found !== undefined
}

export type NamedTask = Pick<TaskRow, 'id' | 'key' | 'title'>

/** Lists tasks of an agent that are not finished, archived ones too, oldest first; of more than `limit` any of them. */
export async function listUnfinishedOf(db: Db, agentRef: AgentRef, limit: number): Promise<NamedTask[]> {
  const some = db('tasks').where({ assignee_agent_id: agentRef }).whereIn('status', unfinished).limit(limit)
  const query = briefTasks.from(db).whereIn('id', some.select('id')).orderBy(['created_at', 'id'])
  return (await briefTasks.list(query)).map(({ id, key, title }) => ({ id, key, title }))
}

/** Takes whoever is assigned to these tasks off them. */
export async function removeAssignee(db: Db, taskIds: readonly TaskId[], at: number): Promise<void> {
  await db('tasks')
    .whereIn('id', [...taskIds])
    .increment('version', 1)
    .update({ assignee_agent_id: null, wake_at: null, updated_at: at })
}

/** Stores what a git host last said of the task's pull request. */
export async function replacePullRequest(
  db: Db,
  taskId: TaskId,
  change: { pullRequest: z.infer<typeof pullRequest> | null; at: number },
): Promise<void> {
  await db('tasks')
    .where({ id: taskId })
    .increment('version', 1)
    .update(tasks.toColumns({ pullRequest: change.pullRequest, updatedAt: change.at }))
}

/** Tasks whose scheduled start has come, earliest first. */
export async function listDueStarts(
  db: Db,
  filter: { now: number; after?: Pick<DueStart, 'id' | 'wakeAt'>; limit: number },
): Promise<DueStart[]> {
  const query = dueStarts.from(db).where('wake_at', '<=', filter.now).whereRaw(inKeptWorkspace('tasks'))
  if (filter.after) void query.whereRaw('(wake_at, id) > (?, ?)', [filter.after.wakeAt, filter.after.id])
  return dueStarts.list(query.orderBy(['wake_at', 'id']).limit(filter.limit))
}

const dueStarts = table('tasks', { id, workspaceId, wakeAt: tasks.columns.wakeAt })
/** A task without what it says: thousands may begin at one moment. */
export type DueStart = RowOf<typeof dueStarts>

/** Takes the scheduled start of a task, so that it is woken once. False when another replica was first. */
export async function claimDueStart(db: Db, task: Pick<TaskRow, 'id' | 'wakeAt'>): Promise<boolean> {
  const changed = await db('tasks').where({ id: task.id, wake_at: task.wakeAt }).update({ wake_at: null })
  return changed === 1
}

/** True when a task that is not finished blocks this one. */
export async function hasOpenBlocker(db: Db, taskId: TaskId): Promise<boolean> {
  return (await listBlockedTasks(db, [taskId])).has(taskId)
}

/** Returns the ones of these tasks that an unfinished task blocks. */
export async function listBlockedTasks(db: Db, taskIds: readonly TaskId[]): Promise<Set<TaskId>> {
  if (taskIds.length === 0) return new Set()
  const rows: { task_id: TaskId }[] = await db('task_dependencies')
    .join('tasks', 'tasks.id', 'task_dependencies.depends_on_task_id')
    .whereIn('task_dependencies.task_id', [...taskIds])
    .where({ type: 'blocks' })
    .whereNotIn('tasks.status', finished)
    .distinct('task_dependencies.task_id')
  return new Set(rows.map((each) => each.task_id))
}

/**
 * Locks the links of the workspace's tasks: nobody else links or moves tasks, or makes new ones, until the transaction ends. The lock is
 * taken before any row is locked. It is not the workspace's row: who begins a turn locks that after a conversation, and who moves a task
 * locks the task, which others lock before its conversation.
 */
export async function lockTaskGraph(db: Db, workspaceId: WorkspaceUuid): Promise<void> {
  await lockName(db, `task_graph:${workspaceId}`)
}

/**
 * Whoever closes tasks of the workspace, or takes them off others, looks at what is left one after another: two who close
 * the last two at once would each see the other's still open, and nobody would be woken. Taken after the change itself.
 */
export async function lockClosing(db: Db, workspaceId: WorkspaceUuid): Promise<void> {
  await lockName(db, `task_closing:${workspaceId}`)
}
