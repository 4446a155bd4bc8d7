import type { RunId } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { idPageOf } from '../../../../shared/api/id-paging.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import { batchOf } from '../../../../shared/api/paging.ts'
import { taskRoutes } from '../../../../shared/api/tasks.ts'
import { projectUuidOf } from '../../../../shared/lib/project-ref.ts'
import type { Db } from '../../../db/open.ts'
import { actorOf, type Caller } from '../../../http/callers.ts'
import { answer, implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { lookUpAgent } from '../../agents/lookup.ts'
import { pageFrom } from '../../../http/page-from.ts'
import { ensureTaskConversation } from '../../conversations/task-conversation.ts'
import { markRead } from '../../conversations/steps/read.ts'
import { postMessage } from '../../conversations/steps/post.ts'
import { findConversationOfTask } from '../../conversations/store.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { projectViewerOf } from '../../projects/rules.ts'
import { causeOfCaller } from '../../runs/cause.ts'
import { reasonOf, transitionTask } from '../steps/transition.ts'
import { assignTask } from '../steps/assign.ts'
import { createBatch } from '../own/batch.ts'
import { recordActivity, setArchived } from '../record.ts'
import { checkParent, createTask, linkBlockers } from '../create.ts'
import { includedOf } from './included.ts'
import { countLevels, listTasks, type TaskFilter } from '../list-store.ts'
import {
  changeableTask,
  isTaskVisible,
  lookUpTask,
  readableTask,
  visibleTasks,
  assigneeOf,
  assigneeReference,
  blockersOf,
  parentOf,
} from '../lookup.ts'
import { presentTask, presentTasks } from '../present.ts'
import { isFinished } from '../rules.ts'
import { replaceTask, findTask, findTaskById, listTasksByReferences, lockTaskGraph, type TaskRow } from '../store.ts'
import { updateTask } from '../steps/own/update.ts'
import { wakeForAssignment } from '../steps/wakes.ts'
import { replaceReadMark } from '../own/watcher-store.ts'

type Dependencies = Pick<ResourceDependencies, 'catalog' | 'leaseMs'>

type Routes = typeof taskRoutes

export function taskHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(taskRoutes, {
    list,
    create: (input) => create(input, deps),
    batch: (input) => batch(input, deps),

    async get({ db, caller, params, query, world }) {
      const task = await readableTask(db, caller, params.id)
      const shown = await presentTask(db, task, world.now())
      const moment = { now: world.now(), leaseMs: deps.leaseMs }
      return { ...shown, ...(await includedOf(db, task, { caller, include: query.include ?? [], moment })) }
    },

    async update(input) {
      const { db, caller, params, body, world } = input
      const before = await changeableTask(db, caller, params.id)
      const task = await updateTask(db, before, { body, caller, world, catalog: deps.catalog })
      return presentTask(db, task, world.now())
    },

    transition,
    assign,
    move,
    archive: (input) => archive(input, input.world.now()),
    unarchive: (input) => archive(input, null),

    read,
  })
}

/** A person's mark holds for the task's conversation as well. */
async function read({ db, caller, params, world }: HandlerInput<Routes['read']>) {
  const task = await readableTask(db, caller, params.id)
  const at = world.now()
  const { type: readerType, id: readerRef } = actorOf(caller)
  await replaceReadMark(db, { taskId: task.id, readerType, readerRef }, at)
  const conversation = caller.kind === 'person' ? await findConversationOfTask(db, task.id) : null
  if (caller.kind === 'person' && conversation !== null)
    await markRead(db, conversation, { personRef: caller.personRef, at })
  return { lastReadAt: toTimestamp(at) }
}

async function list({ db, caller, query, world }: HandlerInput<Routes['list']>) {
  const shape = { now: world.now(), withDescription: query.include?.includes('description') ?? false }
  if (query.ids !== undefined) return listByIds(db, caller, { ids: query.ids, shape })
  const filter = await filterOf(db, caller, query)
  // A task that the caller may not see is as unknown as one that is not there.
  const { cursor, page } = await pageFrom(query, async (id) => {
    const task = await findTask(db, caller.workspaceId, id)
    return task !== null && (await isTaskVisible(db, caller, task)) ? task : null
  })
  const rows = filter === null ? [] : await listTasks(db, { ...filter, ...page })
  const shown = await presentTasks(db, rows.slice(0, query.limit), shape)
  const byId = new Map(shown.map((task) => [task.id, task]))
  return idPageOf({ rows, limit: query.limit, cursor, present: (row) => byId.get(row.id)! })
}

async function listByIds(
  db: Db,
  caller: Caller,
  { ids, shape }: { ids: readonly string[]; shape: { now: number; withDescription: boolean } },
) {
  const current = ids.includes('current') ? await lookUpTask(db, caller, 'current') : null
  const named = await listTasksByReferences(
    db,
    caller.workspaceId,
    ids.filter((id) => id !== 'current'),
  )
  const visible = await visibleTasks(db, caller, named)
  if (current !== null && !visible.some((task) => task.id === current.id)) visible.push(current)
  const shown = await presentTasks(db, visible, shape)
  const byReference = new Map(shown.flatMap((task) => [[task.id, task] as const, [task.key, task] as const]))
  return batchOf(ids, (id) => {
    if (id === 'current') return current === null ? null : byReference.get(current.id)
    return byReference.get(id) ?? byReference.get(id.toUpperCase())
  })
}

/** null: a filter names nothing the caller can see, so nothing matches. */
async function filterOf(
  db: Db,
  caller: Caller,
  query: HandlerInput<Routes['list']>['query'],
): Promise<Omit<TaskFilter, 'limit'> | null> {
  const filter: Omit<TaskFilter, 'limit'> = {
    workspaceId: caller.workspaceId,
    visibleTo: projectViewerOf(caller),
    withArchived: query.archived === true,
    ...(query.status === undefined ? {} : { statuses: query.status }),
    ...(query.priority === undefined ? {} : { priorities: query.priority }),
    ...(query.q === undefined ? {} : { q: query.q }),
  }
  if (query.assignee !== undefined) {
    const agent = query.assignee === 'none' ? null : await lookUpAgent(db, caller, query.assignee)
    if (agent === null && query.assignee !== 'none') return null
    filter.assigneeAgentRef = agent?.id ?? null
  }
  if (query.projectId !== undefined) {
    const id = query.projectId === 'none' ? null : projectUuidOf(query.projectId)
    if (id === null && query.projectId !== 'none') return null
    filter.projectId = id
  }
  if (query.parentTaskId !== undefined) {
    const parent = query.parentTaskId === 'none' ? null : await lookUpTask(db, caller, query.parentTaskId)
    if (parent === null && query.parentTaskId !== 'none') return null
    filter.parentTaskId = parent?.id ?? null
  }
  return filter
}

async function create(input: HandlerInput<Routes['create']>, deps: Dependencies) {
  const { db, caller, body, world } = input
  const parent = body.parentTaskId == null ? null : await parentOf(db, caller, body.parentTaskId)
  const blockers = await blockersOf(db, caller, body.dependsOn ?? [], 'dependsOn')
  const task = await createTask({ db, caller, world, catalog: deps.catalog }, { body, parent })
  await linkBlockers(db, task, blockers)
  await wakeForAssignment(db, { task, actor: actorOf(caller), world })
  return answer(201, await presentTask(db, task, world.now()))
}

async function batch(input: HandlerInput<Routes['batch']>, deps: Dependencies) {
  const { db, caller, body, world } = input
  const { defaults, tasks: items } = body
  const made = await createBatch({ db, caller, world, catalog: deps.catalog }, { defaults, items })
  for (const task of made) await wakeForAssignment(db, { task, actor: actorOf(caller), world })
  const data = await presentTasks(db, made, { now: world.now(), withDescription: true })
  return answer(201, { object: 'list' as const, data })
}

async function transition(input: HandlerInput<Routes['transition']>) {
  const { db, caller, params, body, world } = input
  const { status: to, comment } = body
  if (comment !== undefined && comment.trim() === '') fail('empty_comment', { param: 'comment' })
  const task = await readableTask(db, caller, params.id)
  const actor = actorOf(caller)
  const byRunId = runIdOf(caller)
  const moved = await transitionTask(db, { task, to, reason: body.reason ?? null, actor, byRunId, world })
  if (comment !== undefined) {
    const conversation = await ensureTaskConversation(db, { task: moved, world })
    await postMessage(db, { conversation, author: actor, body: comment, textParam: 'comment', caller, world })
  } else if (isFinished(task)) {
    // A comment wakes the assignee by itself.
    const said = await reasonOf(db, moved, { reason: body.reason ?? '', actor })
    const asker = await causeOfCaller(db, caller)
    const reason = 'This task was reopened.'
    await wakeForAssignment(db, { task: moved, actor, world, reason, said: { ...said, asker } })
  }
  return presentTask(db, moved, world.now())
}

async function assign(input: HandlerInput<Routes['assign']>) {
  const { db, caller, params, body, world } = input
  const task = await readableTask(db, caller, params.id)
  const reference = assigneeReference(body.assignee)
  const agent = reference === null ? null : await assigneeOf(db, caller, { reference, projectId: task.projectId })
  const given = await assignTask(db, { task, agent, actor: actorOf(caller), byRunId: runIdOf(caller), world })
  return presentTask(db, given, world.now())
}

const runIdOf = (caller: Caller): RunId | null => (caller.kind === 'agent' ? caller.runId : null)

async function move(input: HandlerInput<Routes['move']>) {
  const { db, caller, params, body, world } = input
  await lockTaskGraph(db, caller.workspaceId)
  const before = await changeableTask(db, caller, params.id)
  const parent = body.parentTaskId === null ? null : await parentOf(db, caller, body.parentTaskId)
  if (before.parentTaskId === (parent?.id ?? null)) return presentTask(db, before, world.now())
  if (parent !== null)
    await checkParent(db, { taskId: before.id, levels: await countLevels(db, before.id), parentId: parent.id })
  const task = await replaceTask(db, before, { ...before, parentTaskId: parent?.id ?? null, updatedAt: world.now() })
  const data = { from: before.parentTaskId, to: task.parentTaskId }
  await recordActivity(db, { taskId: task.id, kind: 'task.moved', actor: actorOf(caller), data, world })
  return presentTask(db, task, world.now())
}

/** Putting away what is put away, or taking out what is not, changes nothing. */
async function archive(input: HandlerInput<Routes['archive']>, archivedAt: number | null) {
  const { db, caller, params, world } = input
  const before = await changeableTask(db, caller, params.id)
  if ((before.archivedAt === null) === (archivedAt === null)) return presentTask(db, before, world.now())
  const actor = actorOf(caller)
  const task = await setArchived(db, { task: before, archivedAt, actor, world })
  // A task in the archive wakes nobody at its scheduled start.
  if (task.archivedAt === null && task.status === 'open' && hasStartedIn(before, world.now()))
    await wakeForAssignment(db, { task, actor, world, reason: 'The scheduled start of this task has come.' })
  return presentTask(db, (await findTaskById(db, task.id)) ?? task, world.now())
}

/** Returns whether the task's scheduled start came while it was in the archive. */
const hasStartedIn = ({ startAt, archivedAt }: TaskRow, now: number) =>
  startAt !== null && archivedAt !== null && startAt > archivedAt && startAt <= now
