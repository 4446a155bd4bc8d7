import { WriteTimeoutError } from './advisory-locks.ts'

/**
 * The time by which a transaction must be over. Each statement has a limit of its own in PostgreSQL, and none in SQLite, so
 * without this many short statements would hold what they wrote for as long as they like. The clients ask here before each
 * statement: one that comes too late is refused, so the transaction is undone. On PostgreSQL the limit of a statement is
 * lowered as the time goes.
 */
interface Deadline {
  /** Monotonic. */
  until: number
  /** The limit of a statement that PostgreSQL was last told. */
  toldMs: number
}

const deadlines = new WeakMap<object, Deadline>()

/** Called when a transaction begins on a connection; without `until` it may take any time. */
export function setDeadline(connection: object, until: number | undefined, now: number): void {
  if (until === undefined) deadlines.delete(connection)
  else deadlines.set(connection, { until, toldMs: until - now })
}

/** A limit that is lower by less is not told anew, so a usual transaction tells none. */
const toldShare = 0.9

/**
 * Called before each statement of a transaction. Throws when its time is over, but lets it end. Returns the limit (ms) that
 * PostgreSQL is to be told first; null: none.
 */
export function checkDeadline(connection: object, query: string | { sql: string }, now: number): number | null {
  const deadline = deadlines.get(connection)
  if (deadline === undefined) return null
  if (typeof query === 'string' && ending.test(query)) return null
  const leftMs = Math.ceil(deadline.until - now)
  if (leftMs <= 0) throw new WriteTimeoutError('a transaction took too long as a whole')
  if (leftMs >= deadline.toldMs * toldShare) return null
  deadline.toldMs = leftMs
  return leftMs
}

const ending = /^(?:commit|rollback|release)\b/i
