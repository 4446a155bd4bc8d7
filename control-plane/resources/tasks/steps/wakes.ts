import { hasPrefix, type AgentRef, type ConversationId, type TaskId } from '../../../../shared/lib/ids.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Db } from '../../../db/open.ts'
import { asked } from '../../../trust/askers.ts'
import { inQuotes, quoted, type Speaker } from '../../../trust/quote.ts'
import type { Person } from '../../../trust/rules.ts'
import { requestWake, requestWakes, type RequestedWake } from '../../../run/wakes/wakes.ts'
import { findAgent } from '../../agents/store.ts'
import { ensureTaskConversation } from '../../conversations/task-conversation.ts'
import { listLiveOfAgent } from '../../runs/live-store.ts'
import { loadAuthors, type AuthorOf } from '../authors.ts'
import { listDependencies } from '../own/dependency-store.ts'
import { taskPrompt } from '../present.ts'
import { seesProject } from '../lookup.ts'
import { authorsOf, isFinished, type Actor } from '../rules.ts'
import {
  findTaskById,
  hasOpenSubtask,
  listBlockedTasks,
  listTasksByIds,
  type BriefTask,
  type TaskRow,
} from '../store.ts'
import { listWatchers } from '../own/watcher-store.ts'

// Decides whom a change of a task wakes. The wakes are written in the transaction of the change. Who made the change is shown as
// the one behind the wake; who asked for the work is whoever assigned it (trust/askers.ts).

export interface TaskWake {
  task: TaskRow
  triggerSource: 'assignment' | 'fan_in' | 'dependency_resolved'
  /** A sentence of ours: why. */
  reason: string
  /** The words that somebody said with it. */
  said?: TaskRemark
  actor: Actor
  world: World
  /** A wake with the same key is the same wake. */
  key?: string
}

/** The words of somebody with a change of a task. */
export interface TaskRemark {
  /** A name of ours for it: `comment msg_1`. */
  what: string
  by: Speaker
  text: string
  /** The person behind whoever said it. */
  asker: Person
}

/** Wakes the agent that the task is assigned to; nobody when it is finished, archived, or set to start later. */
export async function wakeAssignee(tx: Db, wake: TaskWake): Promise<void> {
  await requestWakes(tx, assigneeWakes(wake, await loadAuthors(tx, [wake.task])), wake.world)
}

/** Returns one wake, or none. */
function assigneeWakes({ task, world, ...wake }: TaskWake, authorOf: AuthorOf): RequestedWake[] {
  if (task.assigneeAgentRef === null || isFinished(task) || task.archivedAt !== null) return []
  if (task.startAt !== null && task.startAt > world.now()) return []
  const { workspaceId, id: taskId, assigneeAgentRef: agentRef } = task
  const { triggerSource, key, said, reason } = wake
  const extra = said === undefined ? '' : quoted({ as: 'request', ...said })
  const prompt = taskPrompt(task, { reason, extra, authorOf })
  const requestedByRef = wake.actor.id
  const words = [...authorsOf(task), ...(said === undefined ? [] : [said.asker])]
  const by = asked(triggerSource, { assigner: task.assignedByUuid }, words)
  return [{ ...by, workspaceId, agentRef, requestedByRef, prompt, taskId, ...(key === undefined ? {} : { key }) }]
}

/** An assignment wakes the agent, if it is set to be woken so and did not give itself the task it works on. */
export async function wakeForAssignment(
  tx: Db,
  wake: Omit<TaskWake, 'triggerSource' | 'reason'> & { reason?: string },
): Promise<void> {
  const { task, actor } = wake
  const agent = task.assigneeAgentRef === null ? null : await findAgent(tx, task.assigneeAgentRef)
  if (agent === null || agent.deletedAt !== null || !agent.wakeOnAssignment) return
  if (actor.id === agent.id && (await worksOn(tx, agent.id, task.id))) return
  await wakeAssignee(tx, {
    ...wake,
    triggerSource: 'assignment',
    reason: wake.reason ?? 'This task was assigned to you.',
  })
}

const worksOn = async (tx: Db, agentRef: AgentRef, taskId: TaskId): Promise<boolean> =>
  (await listLiveOfAgent(tx, agentRef)).some((run) => run.taskId === taskId && run.status === 'running')

/** The last open subtask was finished: whoever has the parent is woken. */
export async function wakeForFanIn(tx: Db, closing: { task: TaskRow; actor: Actor; world: World }): Promise<void> {
  const { task, actor } = closing
  if (task.parentTaskId === null || (await hasOpenSubtask(tx, task.parentTaskId))) return
  const parent = await findTaskById(tx, task.parentTaskId)
  if (parent === null || parent.assigneeAgentRef === null) return
  // Whoever closes it while working on the parent knows.
  if (actor.id === parent.assigneeAgentRef && (await worksOn(tx, parent.assigneeAgentRef, parent.id))) return
  await wakeAssignee(tx, {
    ...closing,
    task: parent,
    triggerSource: 'fan_in',
    reason: `All subtasks of this task are finished; the last, now ${task.status}, was ${await nameFor(tx, parent, task)}`,
    key: `fan_in:${parent.id}:${task.id}:${task.version}`,
  })
}

/** Tasks that are read, and woken for, at once. */
const wokenAtOnce = 200

/**
 * The task no longer blocks others: the assignees of those that nothing else blocks are woken. There may be hundreds, in the
 * one transaction of the change, so what they need is read and written for many at once.
 */
export async function wakeForResolvedDependency(
  tx: Db,
  closing: { task: TaskRow; actor: Actor; world: World },
): Promise<void> {
  const { task: blocker } = closing
  const ofBlocker = await listDependencies(tx, blocker.id, 'blocking')
  const linked = ofBlocker.filter(({ type }) => type === 'blocks').map(({ task }) => task)
  const keyOf = (task: { id: string }) => `dependency_resolved:${task.id}:${blocker.id}:${blocker.version}`
  await wakeUnblocked(tx, { ...closing, blocker, tasks: linked, keyOf })
}

/** Wakes the assignees of tasks whose blocker went, where that was the last one. */
export async function wakeUnblocked(
  tx: Db,
  unblocked: {
    tasks: readonly BriefTask[]
    blocker: TaskRow
    actor: Actor
    world: World
    keyOf?: (task: BriefTask) => string
  },
): Promise<void> {
  const { blocker, actor, world, keyOf } = unblocked
  const names = new Map<string, string>()
  const open = unblocked.tasks.filter((task) => !isFinished(task) && task.assigneeAgentRef !== null)
  for (let at = 0; at < open.length; at += wokenAtOnce) {
    const ids = open.slice(at, at + wokenAtOnce).map(({ id }) => id)
    const blocked = await listBlockedTasks(tx, ids)
    const free = ids.filter((id) => !blocked.has(id))
    const read = new Map((await listTasksByIds(tx, blocker.workspaceId, free)).map((task) => [task.id, task]))
    const wakes: RequestedWake[] = []
    const authorOf = await loadAuthors(tx, [...read.values()])
    for (const task of free.map((id) => read.get(id)).filter((found) => found !== undefined)) {
      const reader = `${task.assigneeAgentRef} ${task.assignedByUuid}`
      const name = names.get(reader) ?? (await nameFor(tx, task, blocker))
      names.set(reader, name)
      const triggerSource = 'dependency_resolved'
      const reason = `Nothing blocks this task any more; the last to do so was ${name}`
      const wake = { task, actor, world, triggerSource, reason, ...(keyOf && { key: keyOf(task) }) } as const
      wakes.push(...assigneeWakes(wake, authorOf))
    }
    await requestWakes(tx, wakes, world)
  }
}

/**
 * The name of a task as the assignee of another one is told it. A task in a project that is closed to them is not named. A title
 * that somebody else wrote is left out, so that it needs no trust to be told that their work is done.
 */
async function nameFor(tx: Db, { assigneeAgentRef, assignedByUuid }: TaskRow, other: TaskRow): Promise<string> {
  const agent = assigneeAgentRef === null ? null : await findAgent(tx, assigneeAgentRef)
  const isSeen =
    other.assigneeAgentRef === assigneeAgentRef || (agent && (await seesProject(tx, agent, other.projectId)))
  if (!isSeen) return 'a task that you cannot see.'
  return other.titleByUuid === assignedByUuid && assignedByUuid !== null
    ? `${other.key}: ${inQuotes(other.title)}`
    : `${other.key}.`
}

/**
 * Wakes the agents that watch the task and have a place to be woken in (`origin`). `what` is a sentence of ours. Whoever made the
 * change, and the assignee (who is woken by other reasons), are left out, and so is who may no longer see the task.
 */
export async function wakeWatchers(
  tx: Db,
  change: {
    task: TaskRow
    what: string
    actor?: Actor
    said?: TaskRemark
    world: World
  },
): Promise<void> {
  const { task, world, actor, said } = change
  const words = [...authorsOf(task), ...(said === undefined ? [] : [said.asker])]
  const extra = said === undefined ? '' : quoted({ as: 'information', ...said })
  const watchers = (await listWatchers(tx, task.id)).filter(({ subjectType }) => subjectType === 'agent')
  const authorOf = await loadAuthors(tx, watchers.length === 0 ? [] : [task])
  for (const watcher of watchers) {
    if (watcher.origin === null) continue
    if (watcher.subjectRef === actor?.id || watcher.subjectRef === task.assigneeAgentRef) continue
    if (!hasPrefix(watcher.subjectRef, 'agt_')) continue
    const agent = await findAgent(tx, watcher.subjectRef)
    if (agent === null || !(await seesProject(tx, agent, task.projectId))) continue
    await requestWake(
      tx,
      {
        ...asked('task_watched', { watcher: watcher.askedByUuid }, words),
        workspaceId: task.workspaceId,
        agentRef: agent.id,
        requestedByRef: actor?.id ?? null,
        prompt: taskPrompt(task, {
          reason: `A task you watch changed. ${change.what}`,
          extra,
          authorOf,
          isWatched: true,
        }),
        ...(await placeOf(tx, { origin: watcher.origin, watched: task, world })),
      },
      world,
    )
  }
}

/**
 * Returns where a watcher's run belongs: in a conversation, or with a task of its own. The watched task stays its assignee's, so a
 * run about it only answers among its comments.
 */
async function placeOf(
  tx: Db,
  { origin, watched, world }: { origin: ConversationId | TaskId; watched: TaskRow; world: World },
) {
  if (hasPrefix(origin, 'cnv_')) return { conversationId: origin }
  if (origin === watched.id) return { conversationId: (await ensureTaskConversation(tx, { task: watched, world })).id }
  const task = await findTaskById(tx, origin)
  return task === null || isFinished(task) ? {} : { taskId: task.id }
}
