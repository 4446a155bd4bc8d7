import type { World } from '../../shared/lib/world.ts'
import { isFull } from './dialect.ts'

/** The state by which the clients of both databases go, and in which they note failures. */
export interface QueryState {
  world: Pick<World, 'monotonic' | 'random' | 'sleep' | 'after'>
  /** A transaction, the wait for its locks and all its attempts included, takes no longer. */
  writeMs: number
  /** The time (monotonic) at which a query last failed since the disk of the database is full; null: none did. */
  fullAt: number | null
  /** Functions that are told of each query that failed, and of each wait for a connection that did. */
  readonly onFailed: Set<(error: unknown) => void>
}

/** knex keeps the whole of its configuration with its client. */
export const queryStateOf = (client: { config: unknown }): QueryState =>
  (client.config as { writes: QueryState }).writes

/**
 * Rethrows what a query failed with, and notes that the disk of the database is full. knex writes the statement before the message;
 * messages reach people, so it stands beside the message here, where only the log shows it.
 */
export function failedQuery(client: { config: unknown }, error: unknown, query: string | { sql: string }): never {
  const state = queryStateOf(client)
  if (isFull(error)) state.fullAt = state.world.monotonic()
  noteFailure(client, error)
  const sql = typeof query === 'string' ? query : query.sql
  const before = `${sql} - `
  if (error instanceof Error && error.message.startsWith(before))
    Object.assign(error, { message: error.message.slice(before.length), sql })
  throw error
}

export function noteFailure(client: { config: unknown }, error: unknown): void {
  for (const tell of queryStateOf(client).onFailed) tell(error)
}
