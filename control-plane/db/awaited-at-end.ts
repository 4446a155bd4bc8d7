import type { Db } from './handle.ts'

/** The answers that nothing in a transaction waits for but its end. */
const answersOf = new WeakMap<object, Promise<unknown>[]>()

/** Begins to collect them for a transaction. */
export function collectAnswers(tx: Db): readonly Promise<unknown>[] {
  const answers: Promise<unknown>[] = []
  answersOf.set(tx, answers)
  return answers
}

/**
 * For a statement that is sent, on whose answer nothing in the transaction depends: `inTransaction` looks at it once the commit is sent
 * behind it. PostgreSQL commits nothing when the statement failed, and the transaction ends with that failure, or is done again
 * for it. Everywhere else, in a savepoint too, it resolves when the answer is there.
 */
export async function awaitedAtEnd(db: Db, answer: Promise<unknown>): Promise<void> {
  const answers = answersOf.get(db)
  if (answers === undefined) return void (await answer)
  // Until it is looked at.
  answer.catch(() => undefined)
  answers.push(answer)
}
