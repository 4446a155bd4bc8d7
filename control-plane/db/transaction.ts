import type { Knex } from 'knex'
import { wasUndoneForAnother } from './dialect.ts'
import type { Tx } from './open.ts'

/**
 * Runs the work in a transaction, and once more when the database undid it, whole, in favour of another transaction: done
 * again, it comes after that one. `onAgain` drops what the work left outside of the database.
 */
export function transactionInTurn<Result>(
  root: Knex,
  work: (tx: Tx) => Promise<Result>,
  onAgain: (error: unknown) => void = () => undefined,
): Promise<Result> {
  return root.transaction(work).catch((error: unknown) => {
    if (!wasUndoneForAnother(error)) throw error
    onAgain(error)
    return root.transaction(work)
  })
}
