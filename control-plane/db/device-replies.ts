import { text } from './columns.ts'
import { deleteInBatches } from './dialect.ts'
import { cellOf } from './reads.ts'
import type { Db } from './open.ts'

/** Answers of devices, for the replica that asked; kept for minutes. */
export async function insertReply(db: Db, reply: { requestId: string; body: string; at: number }): Promise<void> {
  await db('device_replies')
    .insert({ request_id: reply.requestId, body: reply.body, created_at: reply.at })
    .onConflict('request_id')
    .ignore()
}

export async function findReply(db: Db, requestId: string): Promise<string | null> {
  return cellOf(db('device_replies').where({ request_id: requestId }), 'body', text)
}

export async function pruneReplies(db: Db, before: number): Promise<number> {
  return deleteInBatches(db, 'device_replies', db('device_replies').where('created_at', '<', before))
}
