import { once } from 'node:events'
import type { Client } from 'pg'

/**
 * Statements that are asked without waiting for one another's answers are sent at once, and answered in their order: one way
 * to the database and back for all of them. One that fails fails by itself, and those behind it in a transaction with it.
 */
export const pipelined = { pipeline: true } as const

/** What pg keeps to itself, or lets only be read. */
interface Insides {
  /** Whether no statement is under way. */
  readyForQuery: boolean
  pipeline: boolean
}

/**
 * Does what takes more than one way there and back, such as COPY, once what is under way is answered. What is asked while it is
 * being done is sent after it.
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
