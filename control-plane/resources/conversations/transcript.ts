import type { AgentRef, ConversationId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Db } from '../../db/open.ts'
import { listMessages, type MessageRow } from './message-store.ts'
import { loadNames, type NameOf } from './names.ts'
import { forgottenText, type TranscriptMessage } from './own/prompt.ts'

/** Number of messages that an agent is told of. */
export const messagesTold = 20

export async function loadTranscript(
  db: Db,
  workspaceId: WorkspaceUuid,
  messages: readonly MessageRow[],
): Promise<TranscriptMessage[]> {
  const nameOf = await loadNames(db, workspaceId, messages.map(authorOf))
  return messages.map((message) => transcriptMessage(message, nameOf))
}

const authorOf = ({ authorType: type, authorRef: id }: MessageRow) => ({ type, id })

function transcriptMessage(message: MessageRow, nameOf: NameOf): TranscriptMessage {
  const author = authorOf(message)
  return { by: { id: author.id, ...nameOf(author) }, messageId: message.id, body: message.body }
}

/**
 * Returns what an agent's session that begins anew is told of the conversation: all up to its own last message. What came later is in
 * the prompts of its wakes. Empty where it has not written there.
 */
export async function transcriptBefore(
  db: Db,
  of: { workspaceId: WorkspaceUuid; conversationId: ConversationId; agentRef: AgentRef },
): Promise<string> {
  const { workspaceId, conversationId, agentRef } = of
  const place = { direction: 'before' as const, seq: Number.MAX_SAFE_INTEGER }
  const newest = await listMessages(db, { conversationId, place, withDeleted: false, limit: 2 * messagesTold })
  const own = newest.findIndex((each) => each.authorRef === agentRef)
  if (own < 0) return ''
  return forgottenText(await loadTranscript(db, workspaceId, newest.slice(own, own + messagesTold).toReversed()))
}
