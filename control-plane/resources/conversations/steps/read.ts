import type { PersonRef } from '../../../../shared/lib/ids.ts'
import type { Db } from '../../../db/open.ts'
import { recordRead } from '../participant-store.ts'
import type { ConversationRow } from '../store.ts'

/** Marks everything as read by this person. `userId`: `usr_...`; a mark never goes back. */
export async function markRead(
  db: Db,
  { id, messageSeq }: ConversationRow,
  { userId, at }: { userId: PersonRef; at: number },
): Promise<void> {
  await recordRead(db, { conversationId: id, userId, seq: messageSeq, at })
}
