import { expect, test } from 'vitest'
import { castToId, castToTransaction } from './casts.ts'

test('a text that is cast to the id of a kind is found', () => {
  const wrong = [
    'findRun(db, reference as RunId)',
    'const id = text as unknown as AgentRef',
    'ids as readonly TaskId[]',
    'x as ids.PersonUuid | null',
  ]
  expect(wrong.filter((line) => !castToId.test(line))).toEqual([])
})

test('what says the kind otherwise is not', () => {
  const right = [
    'idFrom<RunId>(text)',
    'const id: RunId = run.id',
    'world.uuid<AgentUuid>()',
    'import { runId as RunIdentity }',
    'value as string',
    'import type { AgentRow as AgentRefs }',
  ]
  expect(right.filter((line) => castToId.test(line))).toEqual([])
})

test('a handle that is cast to a transaction is found, and a type that is named is not', () => {
  expect(
    ['cancelRun(db as Tx, run)', 'input.db as unknown as Tx', 'x as Knex.Transaction'].filter(
      (line) => !castToTransaction.test(line),
    ),
  ).toEqual([])
  expect(
    ['async (tx: Tx) => 1', "import type { Tx } from './open.ts'", 'has Tx', 'as TxOptions'].filter((line) =>
      castToTransaction.test(line),
    ),
  ).toEqual([])
})
