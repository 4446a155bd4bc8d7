import { int, json, text, time } from '../db/columns.ts'
import { deleteInBatches } from '../db/dialect.ts'
import type { Db } from '../db/open.ts'
import { table, type RowOf } from '../db/table.ts'
import { happening } from './events.ts'

// Deliveries of GitHub. They are stored before they are answered, then processed by the replica that claims them.

const deliveries = table('github_deliveries', { id: text, happening: json(happening), attempts: int, dueAt: time })
export type DeliveryRow = RowOf<typeof deliveries>

/** Returns false when the delivery is stored already. One that was given up is accepted again. */
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

/** Lists deliveries that are due, the oldest first. */
export async function listDueDeliveries(db: Db, now: number, limit: number): Promise<DeliveryRow[]> {
  return deliveries.list(
    deliveries.from(db).where({ state: 'waiting' }).where('due_at', '<=', now).orderBy(['due_at', 'id']).limit(limit),
  )
}

/** Claims the delivery until `until`. After that it is due again, in case this process is gone. */
export async function claimDelivery(db: Db, delivery: DeliveryRow, until: number): Promise<boolean> {
  const changed = await db('github_deliveries')
    .where({ id: delivery.id, state: 'waiting', due_at: delivery.dueAt, attempts: delivery.attempts })
    .update({ due_at: until, attempts: delivery.attempts + 1 })
  return changed === 1
}

/** Returns false when it was finished before. */
export async function finishDelivery(db: Db, id: string): Promise<boolean> {
  return (await db('github_deliveries').where({ id, state: 'waiting' }).update({ state: 'done', trouble: null })) === 1
}

/** Makes the delivery due again at `dueAt`; null gives it up. */
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
  return deleteInBatches(db, 'github_deliveries', db('github_deliveries').where('created_at', '<', before))
}
