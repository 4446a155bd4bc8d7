import type { ConversationId } from '../../../../shared/lib/ids.ts'
import { firstText, type conversationRoutes } from '../../../../shared/api/conversations.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { Db } from '../../../db/open.ts'
import { actorOf, type Caller } from '../../../http/callers.ts'
import { answer, type HandlerInput } from '../../../http/implement.ts'
import { lookUpTask } from '../../tasks/lookup.ts'
import type { TaskRow } from '../../tasks/store.ts'
import { knownParticipant } from '../lookup.ts'
import { insertParticipants, type Participant } from '../participant-store.ts'
import { checkText, postMessage } from '../steps/post.ts'
import { presentConversation } from '../present.ts'
import { dmOf } from '../own/rules.ts'
import {
  findConversation,
  findConversationOfTask,
  findDm,
  insertConversation,
  type ConversationRow,
  type NewConversation,
} from '../store.ts'
import { participantsOf } from '../task-conversation.ts'

type Create = HandlerInput<typeof conversationRoutes.create>

export async function createConversation(input: Create) {
  const { db, caller, body, world } = input
  const first = firstText(body.firstMessage)
  if (first !== undefined) checkText(first, 'firstMessage')
  const task = body.taskId == null ? null : await knownTask(db, caller, body.taskId)
  const participants = await everybody(db, caller, { asked: body.participants, task })
  // The conversation of a task wakes its assignee, whatever kind is asked for, and is exempt from the rules of a dm.
  const kind = task === null ? (body.kind ?? 'channel') : 'dm'
  const dm = kind === 'dm' && task === null ? dmOf(participants) : null
  if (typeof dm === 'string') fail(dm, { param: 'participants' })
  const author = actorOf(caller)
  const row: NewConversation = {
    id: world.id('cnv_'),
    workspaceId: caller.workspaceId,
    kind,
    title: body.title ?? null,
    taskId: task?.id ?? null,
    dmUser: dm?.personRef ?? null,
    dmAgent: dm?.agentRef ?? null,
    createdByType: author.type,
    createdByRef: author.id,
    createdAt: world.now(),
  }
  if (!(await insertConversation(db, row))) return refuseSecond(db, row)
  await insertParticipants(db, row.id, { participants, at: row.createdAt })
  const made = await stored(db, row.id)
  if (first !== undefined) {
    await postMessage(db, { conversation: made, author, body: first, caller, world })
  }
  return answer(201, await presentConversation(db, caller, await stored(db, row.id)))
}

async function knownTask(db: Db, caller: Caller, reference: string): Promise<TaskRow> {
  return (await lookUpTask(db, caller, reference)) ?? fail('task_not_found', { param: 'taskId' })
}

/** The requested participants and the caller, once each; for a task also its creator and its assignee. */
async function everybody(
  db: Db,
  caller: Caller,
  { asked, task }: { asked: Create['body']['participants']; task: TaskRow | null },
): Promise<Participant[]> {
  const all = [actorOf(caller)]
  for (const input of asked) all.push(await knownParticipant(db, caller, input))
  if (task !== null) all.push(...participantsOf(task))
  return [...new Map(all.map((participant) => [participant.id, participant])).values()]
}

async function refuseSecond(db: Db, row: NewConversation): Promise<never> {
  if (row.taskId !== null) {
    const conversationId = (await findConversationOfTask(db, row.taskId))?.id
    fail('task_already_has_conversation', { param: 'taskId', details: { conversationId } })
  }
  const dm = { workspaceId: row.workspaceId, personRef: row.dmUser ?? '', agentRef: row.dmAgent ?? '' }
  const conversationId = (await findDm(db, dm))?.id
  return fail('dm_already_exists', { param: 'participants', details: { conversationId } })
}

const stored = async (db: Db, id: ConversationId): Promise<ConversationRow> =>
  (await findConversation(db, id)) ?? fail('conversation_not_found', { param: 'id' })
