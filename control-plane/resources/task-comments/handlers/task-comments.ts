import { idFrom } from '../../../../shared/lib/ids.ts'
import { fail, failPlain } from '../../../../shared/api/errors.ts'
import { sentText, sentTextKey } from '../../../../shared/api/messages.ts'
import { taskCommentRoutes } from '../../../../shared/api/task-comments.ts'
import type { Db, Tx } from '../../../db/open.ts'
import { cancelRun } from '../../../run/endings/cancel-run.ts'
import { actorOf, type Caller } from '../../../http/callers.ts'
import { answer, implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { checkText, postMessage } from '../../conversations/steps/post.ts'
import { findConversationOfTask } from '../../conversations/store.ts'
import { ensureTaskConversation } from '../../conversations/task-conversation.ts'
import { requiredText } from '../../conversations/text.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { presentComments } from '../../conversations/present-message.ts'
import { findMessage, listMessages } from '../../conversations/message-store.ts'
import { listLiveOfTask } from '../../runs/live-store.ts'
import { watchTask } from '../../tasks/record.ts'
import { reopenTask } from '../../tasks/steps/transition.ts'
import { lookUpTask } from '../../tasks/lookup.ts'
import { isFinished } from '../../tasks/rules.ts'
import { findTaskById, type TaskRow } from '../../tasks/store.ts'

/** The comments of a task are the messages of its conversation in another shape. */
export function taskCommentHandlers(deps: Pick<ResourceDependencies, 'bus' | 'leaseMs'>): ImplementedRoute[] {
  return implement(taskCommentRoutes, { list, create: (input) => create(input, deps) })
}

async function list({ db, caller, params, query }: HandlerInput<typeof taskCommentRoutes.list>) {
  const task = await commentedTask(db, caller, params.taskId)
  const conversation = await findConversationOfTask(db, task.id)
  const { after, limit } = query
  const place = after === undefined ? null : await findMessage(db, idFrom(after))
  if (after !== undefined && (place === null || place.conversationId !== conversation?.id))
    fail('invalid_cursor', { param: 'after' })
  const rows =
    conversation === null
      ? []
      : await listMessages(db, {
          conversationId: conversation.id,
          withDeleted: false,
          limit,
          ...(place === null ? {} : { place: { direction: 'after', seq: place.seq } }),
        })
  const data = await presentComments(db, caller, { task, messages: rows.slice(0, limit) })
  const hasMore = rows.length > limit
  const nextCursor = hasMore ? (data.at(-1)?.id ?? null) : null
  return { object: 'list' as const, data, hasMore, nextCursor, cursor: nextCursor }
}

async function create(
  input: HandlerInput<typeof taskCommentRoutes.create>,
  deps: Pick<ResourceDependencies, 'bus' | 'leaseMs'>,
) {
  const { db, caller, params, body, world } = input
  const found = await commentedTask(db, caller, params.taskId)
  const text = requiredText(sentText(body), 'content')
  if (text.trim() === '') fail('empty_comment', { param: sentTextKey(body) })
  checkText(text, sentTextKey(body))
  const actor = actorOf(caller)
  if (body.reopen && !isFinished(found))
    fail('invalid_task_transition', {
      param: 'reopen',
      message: `${found.key} is ${found.status}; only a done or cancelled task is opened again.`,
    })
  const task = body.reopen ? await reopenTask(db, { task: found, reason: text, actor, world }) : found
  if (body.interrupt) await interrupt(db, task, { caller, leaseMs: deps.leaseMs, world })
  const conversation = await ensureTaskConversation(db, { task, world })
  const { parentMessageId, attachmentIds } = body
  const message = await postMessage(db, {
    conversation,
    author: actorOf(caller),
    body: text,
    caller,
    world,
    ...(parentMessageId == null ? {} : { parentMessageId }),
    ...(attachmentIds === undefined ? {} : { attachmentIds }),
  })
  // Whoever comments on a task watches it from then on.
  const { type, id } = actorOf(caller)
  await watchTask(db, { taskId: task.id, subject: { type, id }, addedBy: 'auto', origin: null, world })
  const commented = (await findTaskById(db, task.id)) ?? task
  const [comment] = await presentComments(db, caller, { task: commented, messages: [message] })
  return answer(201, comment!)
}

/** Whoever may comment may interrupt; a run does not interrupt itself. */
async function interrupt(
  db: Tx,
  task: TaskRow,
  by: { caller: Caller; leaseMs: number; world: Parameters<typeof cancelRun>[2]['world'] },
): Promise<void> {
  const { caller, leaseMs, world } = by
  for (const run of await listLiveOfTask(db, task.id)) {
    const isOwn = caller.kind === 'agent' && caller.runId === run.id
    if (run.agentRef !== task.assigneeAgentRef || isOwn) continue
    await cancelRun(db, run, { exitReason: 'interrupted', reason: 'Interrupted by a comment.', leaseMs, world })
  }
}

/** The task; comments answer an unknown one with a plain error. */
async function commentedTask(db: Db, caller: Caller, reference: string): Promise<TaskRow> {
  return (await lookUpTask(db, caller, reference)) ?? failPlain('plain.comment_task_missing')
}
