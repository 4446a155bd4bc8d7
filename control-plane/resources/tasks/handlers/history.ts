import { z } from 'zod'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import { cursorOf, pageOf } from '../../../../shared/api/paging.ts'
import { taskHistoryRoutes, type TaskHistoryEntry } from '../../../../shared/api/task-history.ts'
import type { WorkflowStepOfRun } from '../../../../shared/api/workflow-fields.ts'
import type { Db } from '../../../db/open.ts'
import { implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { findConversationOfTask } from '../../conversations/store.ts'
import { listMessages } from '../../conversations/message-store.ts'
import { listWorkflowSteps } from '../../runs/steps/workflow-step.ts'
import type { RunRow } from '../../runs/store.ts'
import { listActivity, type ActivityRow } from '../activity-store.ts'
import { withoutHiddenNames } from '../own/hidden-names.ts'
import { runsOfTask } from './included.ts'
import { readableTask } from '../lookup.ts'
import type { TaskRow } from '../store.ts'

const seqCursor = z.tuple([z.number().int().nonnegative()])

export function taskHistoryHandlers(): ImplementedRoute[] {
  return implement(taskHistoryRoutes, {
    history,

    async activity({ db, caller, params, query }) {
      const task = await readableTask(db, caller, params.id)
      const after = cursorOf(query, seqCursor)
      const { limit } = query
      const filter = { taskId: task.id, limit, ...(after === null ? {} : { beforeSeq: after[0] }) }
      const rows = await listActivity(db, filter)
      const page = pageOf({ rows, limit, keyOf: (entry) => [entry.seq], present: presentActivity })
      return { ...page, data: await withoutHiddenNames(db, caller, page.data) }
    },
  })
}

async function history({ db, caller, params, query }: HandlerInput<typeof taskHistoryRoutes.history>) {
  const task = await readableTask(db, caller, params.id)
  const { limit } = query
  const activity = await listActivity(db, { taskId: task.id, source: 'activity', limit })
  const git = await listActivity(db, { taskId: task.id, source: 'git', limit })
  const runs = await runsOfTask(db, task, { caller, limit: limit + 1 })
  const comments = await commentsOf(db, task, limit)
  const steps = await listWorkflowSteps(
    db,
    runs.map(({ id, workflowRunId }) => (workflowRunId === null ? null : id)),
  )
  const sources = [
    // Starts and ends of runs are told by the runs themselves.
    activity
      .slice(0, limit)
      .filter((entry) => !entry.kind.startsWith('run.'))
      .map(entryOfActivity),
    git.slice(0, limit).map(entryOfActivity),
    runs.slice(0, limit).map((run) => entryOfRun(run, steps.get(run.id))),
    comments.slice(0, limit),
  ]
  const data = sources
    .flat()
    .map((entry, at) => ({ entry, at }))
    .sort((a, b) =>
      a.entry.createdAt < b.entry.createdAt ? -1 : a.entry.createdAt > b.entry.createdAt ? 1 : b.at - a.at,
    )
    .map(({ entry }) => entry)
  const hasMore = [activity, git, runs, comments].some((rows) => rows.length > limit)
  return { object: 'list' as const, data: await withoutHiddenNames(db, caller, data), hasMore }
}

const presentActivity = (entry: ActivityRow) => ({
  id: entry.id,
  kind: entry.kind,
  createdAt: toTimestamp(entry.createdAt),
  actor: { type: entry.actorType, id: entry.actorRef },
  data: entry.data,
})

const entryOfActivity = (entry: ActivityRow): TaskHistoryEntry => ({ ...presentActivity(entry), source: entry.source })

const entryOfRun = (run: RunRow, workflowStep: WorkflowStepOfRun | undefined): TaskHistoryEntry => ({
  id: run.id,
  source: 'run',
  kind: `run.${run.status}`,
  createdAt: toTimestamp(run.createdAt),
  actor: { type: 'agent', id: run.agentRef },
  data: {
    triggerSource: run.triggerSource,
    requestedBy: run.requestedByRef,
    exitReason: run.exitReason,
    startedAt: toTimestamp(run.startedAt),
    completedAt: toTimestamp(run.endedAt),
    ...(workflowStep !== undefined && { workflowStep }),
  },
})

/** The newest comments first, one more than `limit`. */
async function commentsOf(db: Db, task: TaskRow, limit: number): Promise<TaskHistoryEntry[]> {
  const conversation = await findConversationOfTask(db, task.id)
  if (conversation === null) return []
  const place = { direction: 'before', seq: Number.MAX_SAFE_INTEGER } as const
  const messages = await listMessages(db, { conversationId: conversation.id, place, withDeleted: false, limit })
  return messages.map((message) => ({
    id: message.id,
    source: 'comment',
    kind: 'comment.posted',
    createdAt: toTimestamp(message.createdAt),
    actor: { type: message.authorType, id: message.authorRef },
    data: { body: message.body, parentMessageId: message.parentMessageId, editedAt: toTimestamp(message.editedAt) },
  }))
}
