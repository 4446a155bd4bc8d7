import { isDeepStrictEqual } from 'node:util'

/**
 * A row with these changes and the time of them; the row itself when they change nothing of it, which `replace` then does not write.
 * So a request that changes nothing leaves no trace, whichever its resource. Throws when a change is no field of the row: a
 * spread is not checked by the compiler, and what is no field would be lost without a word.
 */
export function changedRow<Row extends { updatedAt: number }>(before: Row, changes: Partial<Row>, at: number): Row {
  for (const field of Object.keys(changes)) if (!(field in before)) throw new Error(`A row has no field ${field}.`)
  const isSame = Object.entries(changes).every(([field, value]) => isDeepStrictEqual(value, before[field as keyof Row]))
  return isSame ? before : { ...before, ...changes, updatedAt: at }
}
