import { expect, test } from 'vitest'
import { waitBesideHandles } from './waits-beside-handles.ts'

test('promises that are waited for together in a file with handles of the database are found', () => {
  const wrong = [
    "import type { Tx } from '../db/open.ts'\nawait Promise.all([insertCall(tx, call), start(tx)])",
    'const both = (db: Db) =>\n  Promise.allSettled([\n    findRun(db, id),\n  ])',
    '(db: Askable) =>\nPromise.race(asks)',
  ]
  expect(wrong.map(waitBesideHandles)).toEqual([1, 1, 1])
})

test('those of a file without handles are not, nor is inOneTrip', () => {
  const right = [
    'await Promise.all(brokers.map((broker) => broker.close()))',
    "import type { Tx } from '../db/open.ts'\nawait inOneTrip(tx, [() => insertCall(tx, call)])",
    'const work: Promise<Db> = open()',
  ]
  expect(right.map(waitBesideHandles)).toEqual([-1, -1, -1])
})
