import type { ConversationId, MessageId, TaskId } from '../../../../shared/lib/ids.ts'
import { inQuotes, nameOf, quoted, type Speaker } from '../../../trust/quote.ts'
import type { Person } from '../../../trust/rules.ts'
import type { AuthorOf } from '../../tasks/authors.ts'
import type { TaskRow } from '../../tasks/store.ts'
import { taskPrompt } from '../../tasks/present.ts'

// The prompt of an agent that a message wakes.

/** A message as agents are told it. */
export interface TranscriptMessage {
  by: Speaker
  messageId: MessageId
  body: string
}

export interface MessageFacts {
  conversation: { id: ConversationId; kind: 'dm' | 'channel'; title: string | null; taskId: TaskId | null }
  /** The message that wakes the agent. */
  said: TranscriptMessage
  /** Tells of its files; empty without any. */
  attachments: string
  /** The messages since the agent's own last one, oldest first. */
  earlier: readonly TranscriptMessage[]
}

const earlierChars = 8_000

/** `work`: the discussed task, if the agent should work on it, and the person whom the message is from. */
export function messagePrompt(
  facts: MessageFacts,
  work: { task: TaskRow; authorOf: AuthorOf; askedBy: Person } | null,
): string {
  const { conversation, said, attachments } = facts
  const who = nameOf(said.by)
  const joined = (parts: readonly string[]) => parts.filter((part) => part !== '').join('\n\n')
  const blockOf = (kind: 'comment' | 'message') =>
    joined([quoted({ as: 'request', what: `${kind} ${said.messageId}`, by: said.by, text: said.body }), attachments])
  if (work !== null) {
    const { task, ...about } = work
    const extra = joined([earlierText(facts.earlier), blockOf('comment'), answerNote('comment')])
    return taskPrompt(task, { ...about, reason: `${who} commented on this task.`, extra })
  }
  const place = conversation.title === null ? conversation.id : `${inQuotes(conversation.title)} (${conversation.id})`
  const where = conversation.taskId !== null ? 'on a task, in' : conversation.kind === 'dm' ? 'to you in' : 'in'
  const wrote = `${who} wrote ${where} ${place}.`
  return joined([wrote, blockOf('message'), earlierText(facts.earlier), answerNote('message')])
}

const answerNote = (kind: 'comment' | 'message') => `Your final answer is posted there as your ${kind}.`

const earlierText = (earlier: readonly TranscriptMessage[]): string =>
  textOf('Said before, since you last wrote there:', earlier)

/** Returns what a session is told that knows nothing of the conversation; `''`: nothing was said. */
export const forgottenText = (messages: readonly TranscriptMessage[]): string =>
  textOf('You do not remember this conversation, since this is a new session. Said there before:', messages)

/** The newest messages that fit. */
function textOf(heading: string, earlier: readonly TranscriptMessage[]): string {
  const blocks: string[] = []
  let left = earlierChars
  for (const { by, messageId, body } of earlier.toReversed()) {
    // A body of line ends alone grows when it is quoted, and a long one is not worth quoting.
    if (body.length > left) break
    const block = quoted({ as: 'information', what: `message ${messageId}`, by, text: body })
    if (block.length > left) break
    left -= block.length
    blocks.unshift(block)
  }
  return blocks.length === 0 ? '' : `${heading}\n\n${blocks.join('\n\n')}`
}
