const handles = /\b(?:Tx|Db|Askable)\b/
const waits = /\bPromise\.(?:all|allSettled|any|race)\b/

/**
 * The line of a file that has handles of the database in which promises are waited for together; -1: none. In a transaction what is asked
 * at once has an order, and must have ended before the transaction does: `inOneTrip` (control-plane/db/one-trip.ts) sees to both.
 */
export const waitBesideHandles = (text: string): number =>
  handles.test(text) ? text.split('\n').findIndex((line) => waits.test(line)) : -1
