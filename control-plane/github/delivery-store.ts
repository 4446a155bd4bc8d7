import { int, json, text, time } from '../db/columns.ts'
import type { Db } from '../db/open.ts'
import { table, type RowOf } from '../db/table.ts'
import { happening } from './events.ts'

/** Deliveries of GitHub: stored before they are answered, then worked off by whichever replica claims them. */

const deliveries = table('github_deliveries', { id: text, happening: json(happening), attempts: int, dueAt: time })
export type DeliveryRow = RowOf<typeof deliveries>

/** False when the delivery is here already. One that was given up is taken again. */
export async function insertDelivery(
  db: Db,
  delivery: { id: string; happening: DeliveryRow['happening']; at: number },
): Promise<boolean> {
  const inserted: unknown[] = await db('github_deliveries')
    .insert({ ...deliveries.toColumns({ ...delivery, dueAt: delivery.at }), state: 'waiting', created_at: delivery.at })
    .onConflict('id')
    .merge({ state: 'waiting', attempts: 0, due_at: delivery.at })
    .where('github_deliveries.state', 'failed')
    .returning('id')
  return inserted.length === 1
}

/** Those that wait to be worked off, the oldest first. */
export async function listDueDeliveries(db: Db, now: number, limit: number): Promise<DeliveryRow[]> {
  return deliveries.list(
    deliveries
      .from(db)
      .where({ state: 'waiting' })
      .where('due_at', '<=', now)
      .orderBy([{ column: 'due_at' }, { column: 'id' }])
      .limit(limit),
  )
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
