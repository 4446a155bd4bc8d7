import type { Knex } from 'knex'

/** The connections of this process to its database. */
export interface PoolUse {
  used: number
  idle: number
  most: number
  /** Those who wait for one. */
  waiting: number
}

/** The part of tarn's pool that knex keeps with its client. */
interface Pool {
  max: number
  numUsed(): number
  numFree(): number
  numPendingAcquires(): number
}

/** null: the database is closed. */
export function poolUseOf(root: Knex): PoolUse | null {
  const { pool } = root.client as { pool?: Pool }
  if (pool === undefined) return null
  return { used: pool.numUsed(), idle: pool.numFree(), most: pool.max, waiting: pool.numPendingAcquires() }
}
