import { isDeepStrictEqual } from 'node:util'

/**
 * A row with these changes and the time of them; the row itself when they change nothing of it, which `replace` then does not write.
 * So a request that changes nothing leaves no trace, whichever its resource.
 */
export function changedRow<Row extends { updatedAt: number }>(before: Row, changes: Partial<Row>, at: number): Row {
  const isSame = Object.entries(changes).every(([field, value]) => isDeepStrictEqual(value, before[field as keyof Row]))
  return isSame ? before : { ...before, ...changes, updatedAt: at }
}
