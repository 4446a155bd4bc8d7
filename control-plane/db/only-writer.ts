import { fail } from '../../shared/api/errors.ts'

/**
 * Called with the count of rows that a compare-and-set wrote. Fails with `transient_conflict` when somebody else wrote the
 * row since it was read; the transaction is then done again from its beginning.
 */
export function expectOnlyWriter(rows: number): void {
  if (rows !== 1) fail('transient_conflict')
}
