import { once } from 'node:events'
import type { Client } from 'pg'

/**
 * Statements that are asked without waiting for one another's answers are sent at once, and answered in their order: all of them
 * take one round trip. When one fails in a transaction, those behind it fail as well; outside of one they go on.
 */
export const pipelined = { pipeline: true } as const

/** Members that pg keeps to itself, or lets only be read. */
interface Insides {
  /** True while no statement is under way. */
  readyForQuery: boolean
  pipeline: boolean
}

/**
 * Does work that takes more than one round trip, such as COPY, once all statements under way are answered. A statement that is asked
 * meanwhile is sent after it.
 */
export async function aloneOn<Result>(client: Client, work: () => Promise<Result>): Promise<Result> {
  const insides = client as unknown as Insides
  while (!insides.readyForQuery) await once(client, 'drain')
  insides.pipeline = false
  try {
    return await work()
  } finally {
    insides.pipeline = true
  }
}
