import { z } from 'zod'
import { int, json, text, time, toJson } from '../db/columns.ts'
import type { Db } from '../db/open.ts'
import { happening } from './events.ts'

/** Deliveries of GitHub: stored before they are answered, then worked off by whichever replica claims them. */

const row = z
  .object({ id: text, happening: json(happening), attempts: int, due_at: time })
  .transform((r) => ({ id: r.id, happening: r.happening, attempts: r.attempts, dueAt: r.due_at }))
export type DeliveryRow = z.infer<typeof row>

/** False when the delivery is here already. One that was given up is taken again. */
export async function insertDelivery(
  db: Db,
  delivery: { id: string; happening: DeliveryRow['happening']; at: number },
): Promise<boolean> {
  const inserted: unknown[] = await db('github_deliveries')
    .insert({
      id: delivery.id,
      happening: toJson(delivery.happening),
      state: 'waiting',
      due_at: delivery.at,
      created_at: delivery.at,
    })
    .onConflict('id')
    .merge({ state: 'waiting', attempts: 0, due_at: delivery.at })
    .where('github_deliveries.state', 'failed')
    .returning('id')
  return inserted.length === 1
}

/** Those that wait to be worked off, the oldest first. */
export async function listDueDeliveries(db: Db, now: number, limit: number): Promise<DeliveryRow[]> {
  const rows: unknown[] = await db('github_deliveries')
    .where({ state: 'waiting' })
    .where('due_at', '<=', now)
    .orderBy([{ column: 'due_at' }, { column: 'id' }])
    .limit(limit)
  return rows.map((value) => row.parse(value))
}

/** Takes the delivery for the time until `until`; after that it is due again, should this process be gone. */
export async function claimDelivery(db: Db, delivery: DeliveryRow, until: number): Promise<boolean> {
  const changed = await db('github_deliveries')
    .where({ id: delivery.id, state: 'waiting', due_at: delivery.dueAt, attempts: delivery.attempts })
    .update({ due_at: until, attempts: delivery.attempts + 1 })
  return changed === 1
}

export async function finishDelivery(db: Db, id: string): Promise<void> {
  await db('github_deliveries').where({ id }).update({ state: 'done', trouble: null })
}

/** Comes again at `dueAt`; null: it is given up. */
export async function failDelivery(
  db: Db,
  id: string,
  failure: { trouble: string; dueAt: number | null },
): Promise<void> {
  const { trouble, dueAt } = failure
  await db('github_deliveries')
    .where({ id })
    .update({ trouble, ...(dueAt === null ? { state: 'failed' } : { due_at: dueAt }) })
}

export async function removeOldDeliveries(db: Db, before: number): Promise<number> {
  return db('github_deliveries').where('created_at', '<', before).delete()
}
