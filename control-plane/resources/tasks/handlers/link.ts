import type { AgentRef, ConversationId, TaskId } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { taskLinkRoutes } from '../../../../shared/api/task-links.ts'
import type { Db } from '../../../db/open.ts'
import { actorOf, type Caller } from '../../../http/callers.ts'
import { answer, implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { lookUpAgent } from '../../agents/lookup.ts'
import { findMemberByReference } from '../../members/store.ts'
import { causeOfCaller } from '../../runs/cause.ts'
import { findRun } from '../../runs/store.ts'
import { wholeList } from '../../../http/whole-list.ts'
import { recordActivity } from '../record.ts'
import { refuseMoreWaiting } from '../create.ts'
import {
  countBlockedBy,
  countBlocking,
  findDependency,
  isWaitingFor,
  removeDependency,
  replaceDependency,
} from '../own/dependency-store.ts'
import { mostDependencies, mostWatchers } from '../rules.ts'
import { dependenciesOf } from './included.ts'
import { changeableTask, lookUpTask, readableTask, blockerOf, refuseBeyond } from '../lookup.ts'
import { presentDependency, presentWatcher } from '../present.ts'
import { lockClosing, lockTaskGraph, type TaskRow } from '../store.ts'
import { addItem, updateItem } from '../own/checklist.ts'
import { wakeUnblocked } from '../steps/wakes.ts'
import {
  countWatchers,
  findWatcher,
  insertWatcher,
  listWatchers,
  removeWatcher,
  replaceWatcher,
} from '../own/watcher-store.ts'

type Routes = typeof taskLinkRoutes

export function taskLinkHandlers(): ImplementedRoute[] {
  return implement(taskLinkRoutes, {
    addItem,
    updateItem,

    async dependencies({ db, caller, params }) {
      return dependenciesOf(db, caller, await readableTask(db, caller, params.id))
    },

    addDependency,
    removeDependency: unlink,

    async watchers({ db, caller, params }) {
      const task = await readableTask(db, caller, params.id)
      return wholeList((await listWatchers(db, task.id)).map(presentWatcher))
    },

    addWatcher,
    removeWatcher: unwatch,
  })
}

async function addDependency({ db, caller, params, body, world }: HandlerInput<Routes['addDependency']>) {
  // Two links that close a loop together must not be made at once.
  await lockTaskGraph(db, caller.workspaceId)
  const task = await changeableTask(db, caller, params.id)
  const param = 'dependsOnTaskId'
  const blocker = await blockerOf(db, caller, body.dependsOnTaskId, param)
  const { type } = body
  if (blocker.id === task.id) fail('dependency_cycle', { param })
  const link = { taskId: task.id, dependsOnTaskId: blocker.id }
  const before = await findDependency(db, link)
  if (before?.type === type) return answer(200, presentDependency(before))
  if (before === null) {
    const count = (await countBlockedBy(db, task.id)) + 1
    refuseBeyond(mostDependencies, { count, param, of: 'tasks that it depends on' })
    refuseMoreWaiting((await countBlocking(db, [blocker.id])).get(blocker.id) ?? 0, param)
  }
  if (type === 'blocks' && (await isWaitingFor(db, blocker.id, task.id))) fail('dependency_cycle', { param })
  const dependency = { ...link, type, createdAt: before?.createdAt ?? world.now() }
  await replaceDependency(db, dependency)
  const data = { dependsOnTaskId: blocker.id, key: blocker.key, type }
  await recordActivity(db, { taskId: task.id, kind: 'dependency.added', actor: actorOf(caller), data, world })
  return answer(before === null ? 201 : 200, presentDependency(dependency))
}

async function unlink(input: HandlerInput<Routes['removeDependency']>) {
  const { db, caller, params, body, world } = input
  await lockTaskGraph(db, caller.workspaceId)
  const task = await changeableTask(db, caller, params.id)
  const blocker = (await lookUpTask(db, caller, params.dependencyId)) ?? unknownDependency()
  const link = { taskId: task.id, dependsOnTaskId: blocker.id }
  const before = (await findDependency(db, link)) ?? unknownDependency()
  if (body.type !== undefined && body.type !== before.type) unknownDependency()
  await removeDependency(db, link)
  const actor = actorOf(caller)
  const data = { dependsOnTaskId: blocker.id, key: blocker.key, type: before.type }
  await recordActivity(db, { taskId: task.id, kind: 'dependency.removed', actor, data, world })
  if (before.type === 'blocks' && isOpen(blocker)) {
    await lockClosing(db, caller.workspaceId)
    await wakeUnblocked(db, { tasks: [task], blocker, actor, world })
  }
  return presentDependency(before)
}

const isOpen = ({ status }: TaskRow) => status !== 'done' && status !== 'cancelled'

function unknownDependency(): never {
  return fail('dependency_not_found', { param: 'dependencyId' })
}

async function addWatcher({ db, caller, params, body, world }: HandlerInput<Routes['addWatcher']>) {
  const task = await changeableTask(db, caller, params.id)
  const subject = await subjectOf(db, caller, body)
  const key = { taskId: task.id, subjectType: subject.type, subjectRef: subject.id }
  const before = await findWatcher(db, key)
  if (before?.addedBy === 'manual') return answer(200, presentWatcher(before))
  if (before === null)
    refuseBeyond(mostWatchers, { count: (await countWatchers(db, task.id)) + 1, param: 'id', of: 'watchers' })
  const origin = subject.type === 'agent' ? await originOf(db, caller, { agentRef: subject.id, task }) : null
  const askedByUuid = subject.type === 'agent' ? await causeOfCaller(db, caller) : null
  const createdAt = before?.createdAt ?? world.now()
  const watcher = { ...key, addedBy: 'manual' as const, origin, askedByUuid, createdAt }
  if (before === null) await insertWatcher(db, watcher)
  else await replaceWatcher(db, watcher)
  const data = { subject }
  await recordActivity(db, { taskId: task.id, kind: 'watcher.added', actor: actorOf(caller), data, world })
  return answer(before === null ? 201 : 200, presentWatcher(watcher))
}

async function unwatch({ db, caller, params, body, world }: HandlerInput<Routes['removeWatcher']>) {
  const task = await changeableTask(db, caller, params.id)
  const subject = await subjectOf(db, caller, body)
  const key = { taskId: task.id, subjectType: subject.type, subjectRef: subject.id }
  const watcher = (await findWatcher(db, key)) ?? unknownWatcher()
  await removeWatcher(db, key)
  const data = { subject }
  await recordActivity(db, { taskId: task.id, kind: 'watcher.removed', actor: actorOf(caller), data, world })
  return presentWatcher(watcher)
}

/** Returns whom a request names as watcher. */
async function subjectOf(db: Db, caller: Caller, { type, id }: { type: 'user' | 'agent'; id: string }) {
  if (type === 'agent') {
    const agent = await lookUpAgent(db, caller, id)
    return agent === null ? unknownWatcher() : { type, id: agent.id }
  }
  if (id === 'me') return caller.kind === 'person' ? { type, id: caller.personRef } : unknownWatcher()
  const person = await findMemberByReference(db, caller.workspaceId, id)
  return person === null ? unknownWatcher() : { type, id: person.publicId }
}

function unknownWatcher(): never {
  return fail('watcher_not_found', { param: 'id' })
}

/**
 * Returns where an agent is woken: if it begins to watch within its run, in the conversation or task it works on; else at the
 * watched task.
 */
async function originOf(
  db: Db,
  caller: Caller,
  { agentRef, task }: { agentRef: AgentRef; task: TaskRow },
): Promise<ConversationId | TaskId> {
  if (caller.kind !== 'agent' || caller.agentRef !== agentRef) return task.id
  const run = await findRun(db, caller.runId)
  return run?.conversationId ?? run?.taskId ?? task.id
}
