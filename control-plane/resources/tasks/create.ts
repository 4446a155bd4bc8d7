import { idFrom, type TaskId } from '../../../shared/lib/ids.ts'
import { fail } from '../../../shared/api/errors.ts'
import type { BatchItem } from '../../../shared/api/task-shapes.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { ModelCatalog } from '../../catalog/catalog.ts'
import { databaseTroubleOf } from '../../db/dialect.ts'
import type { Db } from '../../db/open.ts'
import { actorOf, type Caller } from '../../http/callers.ts'
import { causeOfCaller } from '../runs/cause.ts'
import { findRun } from '../runs/store.ts'
import { recordEvent } from '../webhooks/event-store.ts'
import { recordActivity, watchTask } from './record.ts'
import { insertChecklistItems } from './own/checklist-store.ts'
import { countBlocking, insertDependencies } from './own/dependency-store.ts'
import { alikeBy, comparedWith, sortedTitleWords } from './own/duplicates.ts'
import { listAncestors, listDuplicateCandidates } from './list-store.ts'
import { assigneeOf, assigneeReference, checkRepo, checkRunSettings, projectOf, refuseBeyond } from './lookup.ts'
import { mostDependencies, mostSubtasks, newItem, parentRefusal, wakeAtOf, type Actor } from './rules.ts'
import { claimTaskKey, countSubtasks, insertTask, listTasksByIds, lockTaskGraph, type TaskRow } from './store.ts'

export interface Creating {
  db: Db
  caller: Caller
  world: World
  catalog: ModelCatalog
  /** The maker of the task; default: the caller. Nobody watches a task of the platform for having made it. */
  author?: Actor
}

/** The values of a new task. Its references to other tasks are given apart, since a batch resolves them differently. */
export type NewTask = Omit<BatchItem, 'parentTaskId' | 'dependsOn' | 'ref'>

/** Makes the task without its dependencies; nobody is woken yet. Fails with the codes of POST /tasks. */
export async function createTask(
  creating: Creating,
  { body, parent }: { body: NewTask; parent: TaskRow | null },
): Promise<TaskRow> {
  const { db, caller, world, author = actorOf(caller) } = creating
  // First, so that whoever makes a task is alone with those of the workspace: nothing looked up below changes meanwhile.
  await lockTaskGraph(db, caller.workspaceId)
  const claimed = await claimTaskKey(db, caller.workspaceId)
  if (claimed === null) return fail('resource_not_found', { param: 'workspaceId' })
  const task = await newRow(creating, { body, parent, key: claimed.key })
  if (parent !== null) await checkParent(db, { taskId: null, levels: 1, parentId: parent.id })
  if (body.force !== true) await checkDuplicate(db, task)
  try {
    await insertTask(db, task)
  } catch (error) {
    if (databaseTroubleOf(error) === 'duplicate') fail('task_key_contention', { cause: error })
    throw error
  }
  await insertChecklist({ db, world }, task, body.checklist ?? [])
  const data = { key: task.key, title: task.title, assigneeAgentId: task.assigneeAgentRef }
  await recordActivity(db, { taskId: task.id, kind: 'task.created', actor: author, data, world })
  await recordEvent(db, { type: 'task.created', workspaceId: task.workspaceId, subjectId: task.id, world })
  if (author.type !== 'system') await watchAsCreator({ db, caller, world }, task, parent)
  return task
}

/** Lets a new task wait for others. Fails with `dependency_cycle` when it is one of them, and where too many wait for one. */
export async function linkBlockers(db: Db, task: TaskRow, blockers: readonly Pick<TaskRow, 'id'>[]): Promise<void> {
  const ids = [...new Set(blockers.map(({ id }) => id))]
  if (ids.includes(task.id)) fail('dependency_cycle', { param: 'dependsOn' })
  for (const waiting of (await countBlocking(db, ids)).values()) refuseMoreWaiting(waiting, 'dependsOn')
  const { id: taskId, createdAt } = task
  await insertDependencies(
    db,
    ids.map((dependsOnTaskId) => ({ taskId, dependsOnTaskId, type: 'blocks', createdAt })),
  )
}

/** `waiting`: the tasks that depend on the blocker already. */
export const refuseMoreWaiting = (waiting: number, param: string): void =>
  refuseBeyond(mostDependencies, { count: waiting + 1, param, of: 'tasks that depend on it' })

/** `wf_` and the end of the id of the workflow run in whose step the task is made. */
async function workflowOf(db: Db, caller: Caller): Promise<string | null> {
  const run = caller.kind === 'agent' ? await findRun(db, caller.runId) : null
  return run?.workflowRunId?.replace(/^flr_/, 'wf_') ?? null
}

async function newRow(
  { db, caller, world, catalog, author = actorOf(caller) }: Creating,
  { body, parent, key }: { body: NewTask; parent: TaskRow | null; key: string },
): Promise<TaskRow> {
  const now = world.now()
  // A subtask belongs to the project of its parent unless it says otherwise.
  const projectId =
    body.projectId === undefined
      ? (parent?.projectId ?? null)
      : body.projectId === null
        ? null
        : (await projectOf(db, caller, body.projectId)).id
  const reference = assigneeReference(body.assignee)
  const agent = reference === null ? null : await assigneeOf(db, caller, { reference, projectId })
  const writtenByUuid = author.type === 'system' ? null : await causeOfCaller(db, caller)
  const task: TaskRow = {
    id: world.id('tsk_'),
    workspaceId: caller.workspaceId,
    key,
    projectId,
    parentTaskId: parent?.id ?? null,
    goalId: body.goalId ?? null,
    workflowRef: await workflowOf(db, caller),
    title: body.title,
    description: body.description ?? null,
    status: 'open',
    assigneeAgentRef: agent?.id ?? null,
    assignedByUuid: agent === null ? null : writtenByUuid,
    titleByUuid: writtenByUuid,
    descriptionByUuid: body.description == null ? null : writtenByUuid,
    priority: body.priority ?? 'normal',
    dueAt: body.dueAt == null ? null : Date.parse(body.dueAt),
    startAt: body.startAt == null ? null : Date.parse(body.startAt),
    wakeAt: null,
    branchName: body.branchName ?? null,
    repoId: body.repoId == null ? null : idFrom(body.repoId.toLowerCase()),
    baseBranch: body.baseBranch ?? null,
    pullRequest: null,
    environment: body.environment ?? null,
    harness: body.harness ?? null,
    modelId: body.modelId ?? null,
    reasoningEffort: body.reasoningEffort ?? null,
    sandboxSize: body.sandboxSize ?? null,
    createdByType: author.type,
    createdByRef: author.id,
    startedAt: null,
    completedAt: null,
    cancelledAt: null,
    archivedAt: null,
    version: 1,
    createdAt: now,
    updatedAt: now,
  }
  checkRunSettings(task, catalog)
  await checkRepo(db, task)
  return { ...task, wakeAt: wakeAtOf(task, now) }
}

/** Fails with `parent_task_cycle` or `parent_task_depth_exceeded`, and when the parent has too many subtasks. */
export async function checkParent(
  db: Db,
  move: { taskId: TaskId | null; levels: number; parentId: TaskId },
): Promise<void> {
  const refusal = parentRefusal({ ...move, ancestors: await listAncestors(db, move.parentId) })
  if (refusal !== null) fail(refusal, { param: 'parentTaskId' })
  const count = (await countSubtasks(db, move.parentId)) + 1
  refuseBeyond(mostSubtasks, { count, param: 'parentTaskId', of: 'subtasks' })
}

/** Fails with `task_duplicate` when an open task of the same project and parent looks like the same work. */
async function checkDuplicate(db: Db, task: TaskRow): Promise<void> {
  const isAlike = alikeBy(sortedTitleWords(task.title))
  const alike = (await listDuplicateCandidates(db, task)).filter((other) => isAlike(other.titleWords))
  const read = await listTasksByIds(
    db,
    task.workspaceId,
    alike.slice(0, 100).map((other) => other.id),
  )
  const match = read.toSorted((a, b) => a.createdAt - b.createdAt).find(comparedWith(task))
  if (match === undefined) return
  const { id, key, title, status } = match
  fail('task_duplicate', {
    message: `${key} looks like the same work: ${title}. Send \`force\` to create it all the same.`,
    details: { match: { id, key, title, status } },
  })
}

async function insertChecklist(
  { db, world }: Pick<Creating, 'db' | 'world'>,
  task: TaskRow,
  items: readonly (string | { text: string })[],
): Promise<void> {
  await insertChecklistItems(
    db,
    items.map((item, position) => {
      const text = typeof item === 'string' ? item : item.text
      return newItem({ id: world.id('chk_'), taskId: task.id, text, position, at: task.createdAt })
    }),
  )
}

/**
 * Whoever makes a task watches it. An agent that gives work to another one is woken where it made the task; not for parts
 * of its own task, whose last closing wakes it anyway.
 */
async function watchAsCreator(
  { db, caller, world }: Pick<Creating, 'db' | 'caller' | 'world'>,
  task: TaskRow,
  parent: TaskRow | null,
): Promise<void> {
  if (caller.kind === 'person') {
    const subject = { type: 'user', id: caller.personRef } as const
    return watchTask(db, { taskId: task.id, subject, addedBy: 'auto', origin: null, world })
  }
  const run = await findRun(db, caller.runId)
  const isPartOfOwn = parent !== null && parent.assigneeAgentRef === caller.agentRef
  const isOwn = task.assigneeAgentRef === caller.agentRef
  const origin = isPartOfOwn || isOwn ? null : (run?.conversationId ?? run?.taskId ?? null)
  const subject = { type: 'agent', id: caller.agentRef } as const
  await watchTask(db, { taskId: task.id, subject, addedBy: 'auto', origin, askedBy: task.titleByUuid, world })
}
