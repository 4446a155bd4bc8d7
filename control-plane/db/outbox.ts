import { z } from 'zod'
import { dialectOfDb, notify, settledOutbox } from './dialect.ts'
import type { Db } from './open.ts'

/** Happenings that other parts, on this replica or another, must act on. Written in the transaction of the change. */
export const topics = [
  'wake.requested',
  'run.queued',
  'run.claimed',
  'run.ended',
  'run.cancel',
  'run.input',
  'device.changed',
  'device.request',
  'device.reply',
  'link.challenge',
] as const
export type Topic = (typeof topics)[number]

export interface OutboxRow {
  seq: number
  topic: Topic
  /** Id of the run or device concerned. */
  key: string
  payload: Record<string, unknown>
}

export const channel = 'svc_outbox'

export interface OutboxEntry {
  topic: Topic
  key: string
  payload?: Record<string, unknown>
  at: number
}

export async function publish(db: Db, entry: OutboxEntry): Promise<void> {
  await db('outbox').insert({
    topic: entry.topic,
    key: entry.key,
    payload: JSON.stringify(entry.payload ?? {}),
    created_at: entry.at,
  })
  await notify(db, channel, '')
}

const rowSchema = z.object({ seq: z.coerce.number(), topic: z.enum(topics), key: z.string(), payload: z.string() })

/** Rows after `seq` that no transaction still open can precede, oldest first. */
export async function listOutbox(db: Db, afterSeq: number, limit: number): Promise<OutboxRow[]> {
  const rows: unknown[] = await settledOutbox(db, db('outbox').where('seq', '>', afterSeq))
    .select('seq', 'topic', 'key', 'payload')
    .orderBy('seq')
    .limit(limit)
  return rows.map((row) => {
    const parsed = rowSchema.parse(row)
    return { ...parsed, payload: JSON.parse(parsed.payload) as Record<string, unknown> }
  })
}

/** Where a reader that starts now begins: it needs nothing of what came before. */
export async function outboxEnd(db: Db): Promise<number> {
  const last: unknown = await settledOutbox(db, db('outbox')).max({ seq: 'seq' }).first()
  return Number((last as { seq: unknown } | undefined)?.seq ?? 0)
}

/** Whether rows after `seq` exist that an open transaction may still precede: a reader looks again soon. */
export async function hasUnsettled(db: Db, afterSeq: number): Promise<boolean> {
  if (dialectOfDb(db) === 'sqlite') return false
  return (await db('outbox').where('seq', '>', afterSeq).first('seq')) !== undefined
}

export async function pruneOutbox(db: Db, before: number): Promise<number> {
  return db('outbox').where('created_at', '<', before).delete()
}
