import type { PersonRef } from '../../../../shared/lib/ids.ts'
import type { Db } from '../../../db/open.ts'
import { recordRead } from '../participant-store.ts'
import type { ConversationRow } from '../store.ts'

/** Marks everything as read by this person; a mark never goes back. */
export async function markRead(
  db: Db,
  { id, messageSeq }: ConversationRow,
  { personRef, at }: { personRef: PersonRef; at: number },
): Promise<void> {
  await recordRead(db, { conversationId: id, personRef, seq: messageSeq, at })
}
