import type { WebhookDeliveryId, WebhookId } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { webhookDeliveryStatuses } from '../../../shared/api/webhook-fields.ts'
import { int, nullableInt, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import { webhookDeliveryId, webhookId, workspaceUuid } from '../../db/id-columns.ts'
import { deleteInBatches } from '../../db/dialect.ts'
import { newestFirst, type OlderPage } from '../../db/id-page.ts'
import type { Db } from '../../db/open.ts'
import { countOf } from '../../db/reads.ts'
import { command, query } from '../../db/statement.ts'
import { table, type RowOf } from '../../db/table.ts'

// Deliveries: what is sent to a webhook, how often that was tried, and what came of it.

const deliveries = table('webhook_deliveries', {
  /** `whd_...` */
  id: webhookDeliveryId,
  webhookId,
  workspaceId: workspaceUuid,
  eventId: text,
  eventType: text,
  /** The body, byte by byte as it is sent each time. */
  payload: text,
  status: z.enum(webhookDeliveryStatuses),
  attempts: int,
  /** When it is sent next, or taken for lost by whoever claimed it; null: it is over. */
  dueAt: nullableTime,
  lastAttemptAt: nullableTime,
  durationMs: nullableInt,
  responseStatus: nullableInt,
  responseBody: nullableText,
  error: nullableText,
  redeliveryOf: webhookDeliveryId.nullable(),
  createdAt: time,
})
export type WebhookDeliveryRow = RowOf<typeof deliveries>

/** The fields of a delivery that nobody has tried to make. */
export const untried = {
  status: 'waiting',
  attempts: 0,
  lastAttemptAt: null,
  durationMs: null,
  responseStatus: null,
  responseBody: null,
  error: null,
  redeliveryOf: null,
} as const

export async function insertDeliveries(db: Db, rows: readonly WebhookDeliveryRow[]): Promise<void> {
  for (const row of rows) await deliveries.insert(db, row)
}

export async function findDelivery(
  db: Db,
  webhookId: WebhookId,
  id: WebhookDeliveryId,
): Promise<WebhookDeliveryRow | null> {
  return deliveries.find(db, { id, webhookId })
}

/** Lists deliveries newest first; returns one row more than `limit`. */
export async function listDeliveries(
  db: Db,
  filter: OlderPage & { webhookId: WebhookId; status?: WebhookDeliveryRow['status'] },
): Promise<WebhookDeliveryRow[]> {
  const { webhookId: webhook_id, status } = filter
  const rows = deliveries.from(db).where({ webhook_id, ...(status !== undefined && { status }) })
  return deliveries.list(newestFirst(rows, filter))
}

/** Deliveries of a webhook that wait; no more are counted than `most`. */
export async function countWaiting(db: Db, webhookId: WebhookId, most: number): Promise<number> {
  const some = db('webhook_deliveries').where({ webhook_id: webhookId }).whereNotNull('due_at').limit(most).select('id')
  return countOf(db.from(some.as('waiting')))
}

// The ids of all webhooks that have deliveries to make, from one to the next in the index: a webhook of which thousands wait takes one step,
// too.
const withDue = query(
  `with recursive waiting(id) as (
     select min(webhook_id) from webhook_deliveries where due_at is not null
     union all
     select (select min(d.webhook_id) from webhook_deliveries d where d.due_at is not null and d.webhook_id > waiting.id)
     from waiting where waiting.id is not null
   )
   select id from waiting
   where id is not null
     and exists (select 1 from webhook_deliveries d where d.webhook_id = waiting.id and d.due_at is not null and d.due_at <= ?)`,
  z.object({ id: webhookId }),
)
export const listWebhooksWithDue = async (db: Db, now: number): Promise<WebhookId[]> =>
  (await withDue.list(db, [now])).map(({ id }) => id)

const dueOf = deliveries.query(
  'where webhook_id = ? and due_at is not null and due_at <= ? order by due_at, id limit ?',
)
/** The deliveries of a webhook that are due, the longest due first. */
export const listDueOf = (
  db: Db,
  { webhookId, now, limit }: { webhookId: WebhookId; now: number; limit: number },
): Promise<WebhookDeliveryRow[]> => dueOf.list(db, [webhookId, now, limit])

/** A delivery as whoever claimed it knows it: nobody else has claimed it since while it is still due then. */
export interface ClaimedDelivery extends WebhookDeliveryRow {
  dueAt: number
}

/** Claims a delivery until `until`, when it is due again in case this process is gone; null: somebody else has it, or it is over. */
export async function claimWebhookDelivery(
  db: Db,
  row: WebhookDeliveryRow,
  { now, until }: { now: number; until: number },
): Promise<ClaimedDelivery | null> {
  const { id, attempts, dueAt } = row
  const claim = { attempts: attempts + 1, dueAt: until, lastAttemptAt: now }
  return (await deliveries.update(db, { id, attempts, dueAt }, claim)) === 1 ? { ...row, ...claim } : null
}

/** Notes what came of an attempt; false: somebody else claimed the delivery since, or it is gone. */
export async function noteAttempt(
  db: Db,
  { id, attempts, dueAt }: ClaimedDelivery,
  outcome: Pick<WebhookDeliveryRow, 'status' | 'dueAt' | 'durationMs' | 'responseStatus' | 'responseBody' | 'error'>,
): Promise<boolean> {
  return (await deliveries.update(db, { id, attempts, dueAt }, outcome)) === 1
}

/** Gives up all that waits for a webhook. */
export async function giveUpDeliveries(db: Db, webhookId: WebhookId, error: string): Promise<void> {
  await db('webhook_deliveries')
    .where({ webhook_id: webhookId })
    .whereNotNull('due_at')
    .update({ status: 'failed', due_at: null, error })
}

// Only deliveries that are over go. What waits is bounded by itself.
const beyond = command(
  `delete from webhook_deliveries where webhook_id = ? and due_at is null and created_at < (
     select created_at from webhook_deliveries where webhook_id = ? and due_at is null order by created_at desc, id desc limit 1 offset ?)`,
)
/** Removes the oldest deliveries of a webhook that are over, so that it keeps `keep` of them. */
export async function removeBeyond(db: Db, webhookId: WebhookId, keep: number): Promise<void> {
  await beyond(db, [webhookId, webhookId, keep - 1])
}

/** Removes deliveries that are older, over or not: nothing waits as long. */
export async function removeOldWebhookDeliveries(db: Db, before: number): Promise<number> {
  return deleteInBatches(db, 'webhook_deliveries', db('webhook_deliveries').where('created_at', '<', before))
}
