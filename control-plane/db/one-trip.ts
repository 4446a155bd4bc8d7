import { isOfFailedTransaction } from './dialect.ts'
import type { Askable } from './handle.ts'

/** An ask is a statement, or a function that begins with one. null stands for no ask. */
type Ask<Handle> = (db: Handle) => unknown

type Answers<Asks extends readonly Ask<never>[]> = { -readonly [At in keyof Asks]: Awaited<ReturnType<Asks[At]>> }

/**
 * Asks in the given order, and waits for none of the answers before it has asked everything: on one connection of PostgreSQL the first
 * statements of all asks are one round trip, and each sees what those before it wrote and locked. Only the first
 * statement of an ask has that place; what an ask sends after an answer comes when that is there.
 *
 * It waits until all asks have ended, so nothing of them is under way in a transaction that is over. PostgreSQL refuses whatever is asked
 * behind a statement that failed, so of several failures it throws one that is the cause, and no such refusal.
 */
export async function inOneTrip<Handle extends Askable, const Asks extends readonly Ask<Handle>[]>(
  db: Handle,
  asks: Asks,
): Promise<Answers<Asks>> {
  const failures: unknown[] = []
  const ended = asks.map(async (ask) => {
    try {
      return await ask(db)
    } catch (error) {
      failures.push(error)
      return undefined
    }
  })
  const answers = await Promise.all(ended)
  if (failures.length > 0) throw failures.find((error) => !isOfFailedTransaction(error)) ?? failures[0]
  return answers as Answers<Asks>
}
