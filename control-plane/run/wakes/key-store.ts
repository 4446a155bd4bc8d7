import type { AgentRef } from '../../../shared/lib/ids.ts'
import { text } from '../../db/columns.ts'
import { cellOf } from '../../db/reads.ts'
import type { Db } from '../../db/open.ts'

// Keys of wakes (`idempotencyKey` of a start-run body) with the answer each got.

/**
 * Takes the key for this transaction. False when it is taken: on PostgreSQL a second wake with the same key waits here
 * until the first one's transaction ended.
 */
export async function claimWakeKey(
  db: Db,
  wake: { agentRef: AgentRef; key: string; now: number; expiresAt: number },
): Promise<boolean> {
  const key = { agent_id: wake.agentRef, wake_key: wake.key }
  await db('wake_keys').where(key).where('expires_at', '<=', wake.now).delete()
  const inserted: unknown[] = await db('wake_keys')
    .insert({ ...key, answer: '', expires_at: wake.expiresAt })
    .onConflict(['agent_id', 'wake_key'])
    .ignore()
    .returning('wake_key')
  return inserted.length === 1
}

/** The answer the key's wake got, as JSON text; null when there is no such key. */
export async function findWakeAnswer(db: Db, agentRef: AgentRef, key: string): Promise<string | null> {
  return cellOf(db('wake_keys').where({ agent_id: agentRef, wake_key: key }), 'answer', text)
}

export async function replaceWakeAnswer(
  db: Db,
  wake: { agentRef: AgentRef; key: string; answer: string },
): Promise<void> {
  await db('wake_keys').where({ agent_id: wake.agentRef, wake_key: wake.key }).update({ answer: wake.answer })
}
