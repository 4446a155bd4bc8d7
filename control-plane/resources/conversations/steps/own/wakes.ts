import { hasPrefix, type AgentRef } from '../../../../../shared/lib/ids.ts'
import type { World } from '../../../../../shared/lib/world.ts'
import type { Db } from '../../../../db/open.ts'
import { asked } from '../../../../trust/askers.ts'
import { nameOf } from '../../../../trust/quote.ts'
import type { Person } from '../../../../trust/rules.ts'
import { requestWake } from '../../../../run/wakes/wakes.ts'
import { causeOf } from '../../../runs/cause.ts'
import { burst, isBursting } from '../../own/message-rules.ts'
import { listLastAuthors, listMessages, type MessageRow } from '../../message-store.ts'
import { authorsOf } from '../../../tasks/rules.ts'
import { loadAuthors } from '../../../tasks/authors.ts'
import { findTaskById, type TaskRow } from '../../../tasks/store.ts'
import { wakeWatchers } from '../../../tasks/steps/wakes.ts'
import { loadAttachments, toldAttachments } from '../../attachments.ts'
import { insertParticipants, listParticipants } from '../../participant-store.ts'
import { messagePrompt } from '../../own/prompt.ts'
import { loadTranscript, messagesTold } from '../../transcript.ts'
import type { ConversationRow } from '../../store.ts'

// Wakes the agents that a message concerns: in a dm its agent, on a task the assignee, elsewhere those who are
// mentioned. Never its own author, and nobody while agents alone keep a conversation busy.

export interface Posted {
  conversation: ConversationRow
  message: MessageRow
  world: World
  /** The agent that gets its turn in another way. */
  exceptAgentRef?: AgentRef
  /** The person behind the author, where the author does not determine them. */
  causedByUuid?: Person
  /** The message answered a question, and the answer wakes the agent that asked. */
  isAnswer?: boolean
}

export async function wakeForMessage(tx: Db, posted: Posted): Promise<void> {
  const { conversation, message, world } = posted
  const author = { type: message.authorType, id: message.authorRef }
  if (author.type === 'system') return
  if (author.type === 'agent') {
    const last = await listLastAuthors(tx, conversation.id, burst.messages)
    if (isBursting(last, world.now())) return
  }
  const task = conversation.taskId === null ? null : await findTaskById(tx, conversation.taskId)
  const causedByUuid = posted.causedByUuid === undefined ? await causeOf(tx, author.id) : posted.causedByUuid
  for (const [agentRef, triggerSource] of await targetsOf(tx, posted, task)) {
    const isAssignee = task !== null && task.assigneeAgentRef === agentRef
    await requestWake(
      tx,
      {
        ...asked(triggerSource, { author: causedByUuid }, isAssignee ? authorsOf(task) : []),
        workspaceId: conversation.workspaceId,
        agentRef,
        requestedByRef: author.id,
        prompt: await promptFor(tx, {
          conversation,
          message,
          agentRef,
          task: isAssignee ? task : null,
          askedBy: causedByUuid,
        }),
        conversationId: conversation.id,
        taskId: isAssignee ? task.id : null,
        key: `message:${message.id}:${agentRef}`,
      },
      world,
    )
  }
  if (task === null) return
  const [said] = await loadTranscript(tx, conversation.workspaceId, [message])
  const text = message.body.slice(0, watchedChars)
  const comment = { what: `comment ${message.id}`, by: said!.by, text, asker: causedByUuid }
  await wakeWatchers(tx, { task, what: `${nameOf(said!.by)} commented on it.`, said: comment, actor: author, world })
}

async function targetsOf(
  tx: Db,
  posted: Posted,
  task: TaskRow | null,
): Promise<Map<AgentRef, 'mention' | 'channel_message'>> {
  const { conversation, message, world } = posted
  const targets = new Map<AgentRef, 'mention' | 'channel_message'>()
  const participants = (await listParticipants(tx, [conversation.id])).get(conversation.id) ?? []
  if (conversation.kind === 'dm' && posted.isAnswer !== true) {
    if (conversation.taskId !== null) {
      if (task?.assigneeAgentRef != null && task.archivedAt === null)
        targets.set(task.assigneeAgentRef, 'channel_message')
    } else
      for (const participant of participants)
        if (hasPrefix(participant.id, 'agt_')) targets.set(participant.id, 'channel_message')
  }
  for (const mention of message.mentions) {
    if (!hasPrefix(mention.id, 'agt_')) continue
    // A dm is private, and admins decide who is in a channel; but whoever is mentioned may discuss a task.
    const isIn = participants.some((participant) => participant.id === mention.id)
    if (!isIn && conversation.taskId === null) continue
    targets.set(mention.id, 'mention')
  }
  for (const id of [message.authorRef, posted.exceptAgentRef])
    if (id != null && hasPrefix(id, 'agt_')) targets.delete(id)
  if (conversation.taskId !== null) {
    const joining = [...targets.keys()].map((id) => ({ type: 'agent' as const, id }))
    await insertParticipants(tx, conversation.id, { participants: joining, at: world.now() })
  }
  return targets
}

/** The beginning of a comment that who watches its task is told. */
const watchedChars = 2_000

/** The prompt for the agent; `task`: the task it should work on; `askedBy`: the person whom the message is from. */
export async function promptFor(
  tx: Db,
  wake: {
    conversation: ConversationRow
    message: MessageRow
    agentRef: AgentRef
    task: TaskRow | null
    askedBy: Person
  },
): Promise<string> {
  const { conversation, message, agentRef, task, askedBy } = wake
  const place = { direction: 'before' as const, seq: message.seq }
  const range = { conversationId: conversation.id, place, withDeleted: false, limit: messagesTold }
  const before = (await listMessages(tx, range)).slice(0, messagesTold)
  const own = before.findIndex((each) => each.authorRef === agentRef)
  // Older messages are told at the start of a run that begins a new session (`transcriptBefore`).
  const unseen = (own < 0 ? before : before.slice(0, own)).toReversed()
  const told = await loadTranscript(tx, conversation.workspaceId, [...unseen, message])
  const viewing = { workspaceId: conversation.workspaceId, viewer: { type: 'agent' as const, id: agentRef } }
  const attachmentsOf = await loadAttachments(tx, viewing, [message])
  const attachments = toldAttachments(attachmentsOf(message))
  const work = task === null ? null : { task, authorOf: await loadAuthors(tx, [task]), askedBy }
  return messagePrompt({ conversation, said: told.at(-1)!, attachments, earlier: told.slice(0, -1) }, work)
}
