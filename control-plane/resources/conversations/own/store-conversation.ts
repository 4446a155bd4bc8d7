import { changedRow } from '../../../db/changed-row.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Db } from '../../../db/open.ts'
import { replaceConversation, type ConversationRow } from '../store.ts'

/** Writes the changed conversation. Fails with `transient_conflict` when somebody else wrote in between. */
export async function storeConversation(
  db: Db,
  world: World,
  { before, changes }: { before: ConversationRow; changes: Partial<ConversationRow> },
): Promise<ConversationRow> {
  const after = changedRow(before, changes, world.now())
  await replaceConversation(db, before, after)
  return after === before ? before : { ...after, version: before.version + 1 }
}
