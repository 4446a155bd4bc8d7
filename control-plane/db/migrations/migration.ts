import type { Knex } from 'knex'

/** A step of the schema, forward only. */
export interface Migration {
  version: number
  name: string
  up(tx: Knex.Transaction): Promise<void>
}
