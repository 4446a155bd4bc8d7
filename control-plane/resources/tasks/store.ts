import { z } from 'zod'
import { taskPriorities, taskStatuses } from '../../../shared/api/task-fields.ts'
import { harnessNames, reasoningEfforts } from '../../../shared/runs/spec.ts'
import { int, nullableJson, nullableText, nullableTime, text, time, toNullableJson } from '../../db/columns.ts'
import { lockName, lockRows } from '../../db/dialect.ts'
import type { Db } from '../../db/open.ts'
import { replaceVersioned } from '../../db/versioned.ts'
import { titleWords } from './duplicates.ts'

export const pullRequest = z.object({ number: z.number().int(), url: z.string() })

const row = z
  .object({
    id: text,
    workspace_id: text,
    key: text,
    project_id: nullableText,
    parent_task_id: nullableText,
    goal_id: nullableText,
    workflow_ref: nullableText,
    title: text,
    description: nullableText,
    status: z.enum(taskStatuses),
    assignee_agent_id: nullableText,
    priority: z.enum(taskPriorities),
    due_at: nullableTime,
    start_at: nullableTime,
    wake_at: nullableTime,
    branch_name: nullableText,
    repo_id: nullableText,
    base_branch: nullableText,
    pull_request: nullableJson(pullRequest),
    environment: z.enum(['device', 'cloud']).nullable(),
    harness: z.enum(harnessNames).nullable(),
    model_id: nullableText,
    reasoning_effort: z.enum(reasoningEfforts).nullable(),
    sandbox_size: z.enum(['small', 'medium', 'large']).nullable(),
    created_by_type: z.enum(['user', 'agent', 'system']),
    created_by_id: nullableText,
    started_at: nullableTime,
    completed_at: nullableTime,
    cancelled_at: nullableTime,
    archived_at: nullableTime,
    version: int,
    created_at: time,
    updated_at: time,
  })
  .transform((r) => ({
    id: r.id,
    workspaceId: r.workspace_id,
    key: r.key,
    /** UUID. */
    projectId: r.project_id,
    parentTaskId: r.parent_task_id,
    goalId: r.goal_id,
    workflowRef: r.workflow_ref,
    title: r.title,
    description: r.description,
    status: r.status,
    /** `agt_` id. */
    assigneeAgentId: r.assignee_agent_id,
    priority: r.priority,
    dueAt: r.due_at,
    startAt: r.start_at,
    /** When the sweep wakes the assignee for a scheduled start; null: there is nothing to wait for. */
    wakeAt: r.wake_at,
    branchName: r.branch_name,
    repoId: r.repo_id,
    baseBranch: r.base_branch,
    pullRequest: r.pull_request,
    environment: r.environment,
    harness: r.harness,
    modelId: r.model_id,
    reasoningEffort: r.reasoning_effort,
    sandboxSize: r.sandbox_size,
    createdByType: r.created_by_type,
    /** `usr_` or `agt_` id; null for the system. */
    createdById: r.created_by_id,
    startedAt: r.started_at,
    completedAt: r.completed_at,
    cancelledAt: r.cancelled_at,
    archivedAt: r.archived_at,
    version: r.version,
    createdAt: r.created_at,
    updatedAt: r.updated_at,
  }))
export type TaskRow = z.infer<typeof row>

const finished = ['done', 'cancelled']

export const parseTask = (value: unknown): TaskRow => row.parse(value)
const parseMaybe = (value: unknown): TaskRow | null => (value === undefined ? null : row.parse(value))

function toColumns(task: TaskRow) {
  return {
    project_id: task.projectId,
    parent_task_id: task.parentTaskId,
    goal_id: task.goalId,
    title: task.title,
    title_words: titleWords(task.title),
    description: task.description,
    status: task.status,
    assignee_agent_id: task.assigneeAgentId,
    priority: task.priority,
    due_at: task.dueAt,
    start_at: task.startAt,
    wake_at: task.wakeAt,
    branch_name: task.branchName,
    repo_id: task.repoId,
    base_branch: task.baseBranch,
    pull_request: toNullableJson(task.pullRequest),
    environment: task.environment,
    harness: task.harness,
    model_id: task.modelId,
    reasoning_effort: task.reasoningEffort,
    sandbox_size: task.sandboxSize,
    started_at: task.startedAt,
    completed_at: task.completedAt,
    cancelled_at: task.cancelledAt,
    archived_at: task.archivedAt,
    updated_at: task.updatedAt,
  }
}

/**
 * The next number of the workspace's task keys, with its prefix. Whoever takes one holds the workspace until its
 * transaction ends, so a number that is rolled back is taken again: no gaps, no doubles.
 */
export async function claimTaskKey(db: Db, workspaceId: string): Promise<{ key: string } | null> {
  const changed: unknown[] = await db('workspaces')
    .where({ id: workspaceId })
    .increment('issue_counter', 1)
    .returning(['issue_prefix', 'issue_counter'])
  if (changed.length === 0) return null
  const { issue_prefix, issue_counter } = z.object({ issue_prefix: text, issue_counter: int }).parse(changed[0])
  return { key: `${issue_prefix}-${issue_counter}` }
}

/** Throws the database's unique violation when the key is another task's. */
export async function insertTask(db: Db, task: TaskRow): Promise<void> {
  await db('tasks').insert({
    ...toColumns(task),
    id: task.id,
    workspace_id: task.workspaceId,
    key: task.key,
    workflow_ref: task.workflowRef,
    created_by_type: task.createdByType,
    created_by_id: task.createdById,
    version: 1,
    created_at: task.createdAt,
  })
}

/** Writes the whole row; false when somebody else changed it since it was read. */
export async function replaceTask(db: Db, before: TaskRow, after: TaskRow): Promise<boolean> {
  return replaceVersioned(db, { table: 'tasks', before }, toColumns(after))
}

/** By `tsk_` id or key (in any case) within a workspace. */
export async function findTask(db: Db, workspaceId: string, reference: string): Promise<TaskRow | null> {
  const by = reference.startsWith('tsk_') ? { id: reference } : { key: reference.toUpperCase() }
  return parseMaybe(
    await db('tasks')
      .where({ workspace_id: workspaceId, ...by })
      .first(),
  )
}

/** With `lock`, nobody else changes it until the transaction ends. */
export async function findTaskById(db: Db, id: string, lock = false): Promise<TaskRow | null> {
  const query = db('tasks').where({ id }).limit(1)
  const [found]: unknown[] = await (lock ? lockRows(query) : query)
  return parseMaybe(found)
}

export async function listTasksByIds(db: Db, workspaceId: string, ids: readonly string[]): Promise<TaskRow[]> {
  if (ids.length === 0) return []
  const rows: unknown[] = await db('tasks')
    .where({ workspace_id: workspaceId })
    .whereIn('id', [...new Set(ids)])
  return rows.map(parseTask)
}

/** By ids or keys, for batch reads. */
export async function listTasksByReferences(
  db: Db,
  workspaceId: string,
  references: readonly string[],
): Promise<TaskRow[]> {
  if (references.length === 0) return []
  const keys = references.map((reference) => reference.toUpperCase())
  const rows: unknown[] = await db('tasks')
    .where({ workspace_id: workspaceId })
    .where((any) => void any.whereIn('id', [...references]).orWhereIn('key', keys))
  return rows.map(parseTask)
}

/** Direct subtasks, oldest first; archived ones too. */
export async function listSubtasks(db: Db, parentTaskId: string): Promise<TaskRow[]> {
  const rows: unknown[] = await db('tasks')
    .where({ parent_task_id: parentTaskId })
    .orderBy([{ column: 'created_at' }, { column: 'id' }])
  return rows.map(parseTask)
}

/** Whether the parent has a subtask that is neither finished nor archived. */
export async function hasOpenSubtask(db: Db, parentTaskId: string): Promise<boolean> {
  const found: unknown = await db('tasks')
    .where({ parent_task_id: parentTaskId })
    .whereNotIn('status', finished)
    .whereNull('archived_at')
    .first('id')
  return found !== undefined
}

/** Tasks of an agent that are not finished, oldest first. */
export async function listOpenOfAssignee(db: Db, workspaceId: string, agentId: string): Promise<TaskRow[]> {
  const rows: unknown[] = await db('tasks')
    .where({ workspace_id: workspaceId, assignee_agent_id: agentId })
    .whereNotIn('status', finished)
    .orderBy([{ column: 'created_at' }, { column: 'id' }])
  return rows.map(parseTask)
}

/** Tasks with this branch, newest first; of this repo, or of none when `repoId` is left out. */
export async function listTasksByBranch(
  db: Db,
  workspaceId: string,
  branch: { name: string; repoId?: string | null },
): Promise<TaskRow[]> {
  const query = db('tasks').where({ workspace_id: workspaceId, branch_name: branch.name })
  if (branch.repoId != null) {
    const { repoId } = branch
    void query.where((either) => void either.where({ repo_id: repoId }).orWhereNull('repo_id'))
  }
  const rows: unknown[] = await query
    .orderBy([
      { column: 'created_at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
    .limit(100)
  return rows.map(parseTask)
}

/** What a git host last said of the task's pull request. */
export async function replacePullRequest(
  db: Db,
  taskId: string,
  change: { pullRequest: z.infer<typeof pullRequest> | null; at: number },
): Promise<void> {
  await db('tasks')
    .where({ id: taskId })
    .increment('version', 1)
    .update({ pull_request: toNullableJson(change.pullRequest), updated_at: change.at })
}

/** Tasks whose scheduled start has come, earliest first. */
export async function listDueStarts(
  db: Db,
  filter: { now: number; after?: Pick<TaskRow, 'id' | 'wakeAt'>; limit: number },
): Promise<TaskRow[]> {
  const query = db('tasks').where('wake_at', '<=', filter.now)
  if (filter.after) void query.whereRaw('(wake_at, id) > (?, ?)', [filter.after.wakeAt, filter.after.id])
  const rows: unknown[] = await query.orderBy([{ column: 'wake_at' }, { column: 'id' }]).limit(filter.limit)
  return rows.map(parseTask)
}

/** Takes the scheduled start of a task, so that it is woken once. False when another replica was first. */
export async function claimDueStart(db: Db, task: Pick<TaskRow, 'id' | 'wakeAt'>): Promise<boolean> {
  const changed = await db('tasks').where({ id: task.id, wake_at: task.wakeAt }).update({ wake_at: null })
  return changed === 1
}

/** Whether a task that is not finished blocks this one. */
export async function hasOpenBlocker(db: Db, taskId: string): Promise<boolean> {
  return (await listBlockedTasks(db, [taskId])).has(taskId)
}

/** Those of the tasks that a task not finished blocks. */
export async function listBlockedTasks(db: Db, taskIds: readonly string[]): Promise<Set<string>> {
  if (taskIds.length === 0) return new Set()
  const rows: { task_id: string }[] = await db('task_dependencies')
    .join('tasks', 'tasks.id', 'task_dependencies.depends_on_task_id')
    .whereIn('task_dependencies.task_id', [...taskIds])
    .where({ type: 'blocks' })
    .whereNotIn('tasks.status', finished)
    .distinct('task_dependencies.task_id')
  return new Set(rows.map((each) => each.task_id))
}

/**
 * Nobody else links or moves tasks of the workspace, or makes new ones, until the transaction ends. Taken before any row is
 * locked. Not the workspace's row: who begins a turn locks that after a conversation, and who moves a task locks the task,
 * which others lock before its conversation.
 */
export async function lockTaskGraph(db: Db, workspaceId: string): Promise<void> {
  await lockName(db, `task_graph:${workspaceId}`)
}

/**
 * Whoever closes tasks of the workspace, or takes them off others, looks at what is left one after another: two who close
 * the last two at once would each see the other's still open, and nobody would be woken. Taken after the change itself.
 */
export async function lockClosing(db: Db, workspaceId: string): Promise<void> {
  await lockName(db, `task_closing:${workspaceId}`)
}
