import type { Knex } from 'knex'

/** A handle or a transaction: what store functions take as their first argument. */
export type Db = Knex | Knex.Transaction
export type Tx = Knex.Transaction
/** The part of a handle on which written statements (statement.ts) can be asked; the builder of knex needs a whole handle. */
export type Askable = Pick<Knex, 'client'>
