import type { TaskInclude } from '../../../../shared/api/tasks.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { isConversationVisible } from '../../conversations/lookup.ts'
import { presentConversation } from '../../conversations/present.ts'
import { findConversationOfTask } from '../../conversations/store.ts'
import { presentComments } from '../../conversations/present-message.ts'
import { listMessages } from '../../conversations/message-store.ts'
import type { Moment } from '../../../run/placement/facts.ts'
import { presentRuns } from '../../runs/steps/present.ts'
import { listRuns } from '../../runs/list-store.ts'
import type { RunRow } from '../../runs/store.ts'
import { listDependencies, type LinkedTask } from '../own/dependency-store.ts'
import { isTaskVisible, visibleTasks } from '../lookup.ts'
import { presentDependencies, presentTaskSummary, presentWatcher } from '../present.ts'
import { findTaskById, listSubtasks, type BriefTask, type TaskRow } from '../store.ts'
import { listWatchers } from '../own/watcher-store.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import { workViewerOf } from '../../projects/work-visibility.ts'

// Related records that GET /tasks/{id} puts into its answer when asked to.

const mostRuns = 25
const mostComments = 25

export async function includedOf(
  db: Db,
  task: TaskRow,
  asked: { caller: Caller; include: readonly TaskInclude[]; moment: Moment },
) {
  const { caller, include } = asked
  const wants = (name: TaskInclude) => include.includes(name)
  const parent = wants('parent') && task.parentTaskId !== null ? await findTaskById(db, task.parentTaskId) : null
  return {
    ...(wants('dependencies') ? { dependencies: await dependenciesOf(db, caller, task) } : {}),
    ...(wants('watchers') ? { watchers: (await listWatchers(db, task.id)).map(presentWatcher) } : {}),
    ...(wants('parent')
      ? { parent: parent !== null && (await isTaskVisible(db, caller, parent)) ? presentTaskSummary(parent) : null }
      : {}),
    ...(wants('subtasks') ? { subtasks: await subtasksOf(db, caller, task) } : {}),
    ...(wants('comments') ? { comments: await commentsOf(db, caller, task) } : {}),
    ...(wants('conversation') ? { conversation: await conversationOf(db, caller, task) } : {}),
    ...(wants('runs')
      ? { runs: await presentRuns(db, await runsOfTask(db, task, { caller, limit: mostRuns }), asked.moment) }
      : {}),
  }
}

/** The last ones, oldest first. */
async function commentsOf(db: Db, caller: Caller, task: TaskRow) {
  const conversation = await findConversationOfTask(db, task.id)
  if (conversation === null) return []
  const place = { direction: 'before', seq: Number.MAX_SAFE_INTEGER } as const
  const range = { conversationId: conversation.id, place, withDeleted: false, limit: mostComments }
  const newest = (await listMessages(db, range)).slice(0, mostComments)
  return presentComments(db, caller, { task, messages: newest.toReversed() })
}

async function conversationOf(db: Db, caller: Caller, task: TaskRow) {
  const conversation = await findConversationOfTask(db, task.id)
  const isShown = conversation !== null && (await isConversationVisible(db, caller, conversation))
  return isShown ? presentConversation(db, caller, conversation) : null
}

/** Tasks that the caller may not see are left out. */
export async function dependenciesOf(db: Db, caller: Caller, task: TaskRow) {
  const seen = async (direction: 'blockedBy' | 'blocking') => {
    const items = await listDependencies(db, task.id, direction)
    return onlyVisible(db, caller, { items, taskOf: (link: LinkedTask) => link.task })
  }
  return presentDependencies(await seen('blockedBy'), await seen('blocking'))
}

async function onlyVisible<T>(
  db: Db,
  caller: Caller,
  { items, taskOf }: { items: readonly T[]; taskOf: (item: T) => BriefTask },
): Promise<T[]> {
  const visible = new Set(await visibleTasks(db, caller, items.map(taskOf)))
  return items.filter((item) => visible.has(taskOf(item)))
}

async function subtasksOf(db: Db, caller: Caller, task: TaskRow) {
  const items = await listSubtasks(db, task.id)
  return (await onlyVisible(db, caller, { items, taskOf: (each) => each })).map(presentTaskSummary)
}

/** Runs that worked on the task, newest first, of agents that the caller sees. */
export async function runsOfTask(
  db: Db,
  task: TaskRow,
  { caller, limit }: { caller: Caller; limit: number },
): Promise<RunRow[]> {
  const { workspaceId, id } = task
  const rows = await listRuns(db, {
    workspaceId,
    taskId: id,
    limit,
    ...withoutUndefined({ visibleTo: workViewerOf(caller) }),
  })
  return rows.slice(0, limit)
}
