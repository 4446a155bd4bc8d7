import { expect, test } from 'vitest'
import { bodyWords, indexedTitleWords } from './page-words.ts'
import { readQuery } from './query.ts'
import { rankOf } from './rank.ts'

const rank = (
  query: string,
  { title = 'Notes', headings = [], body = '' }: { title?: string; headings?: string[]; body?: string },
  isExact = false,
): number => rankOf(readQuery(query)!, { ...bodyWords({ headings, body }), title: indexedTitleWords(title), isExact })
const filler = 'filler '.repeat(200)

/** Each ranks above the next. */
function expectOrder(query: string, pages: readonly Parameters<typeof rank>[1][]): void {
  const ranks = pages.map((page) => rank(query, page))
  expect(ranks).toEqual(ranks.toSorted((a, b) => b - a))
  expect(new Set(ranks).size).toBe(ranks.length)
}

test('title, heading, body', () =>
  expectOrder('ledger', [
    { title: 'Ledger' },
    { title: 'The ledger of bills' },
    { headings: ['Ledger'], body: `Ledger ${filler}` },
    { body: `ledger ledger ledger ${filler}` },
    { body: `ledger ${filler}` },
    { body: `ledger ${filler}${filler}${filler}` },
  ]))

test('a whole word before one that only begins so', () =>
  expectOrder('led', [{ title: 'Led' }, { title: 'Ledger' }, { body: 'led led' }, { body: 'ledger ledger' }]))

test('many words in the body are not more than the title', () =>
  expectOrder('ledger', [{ title: 'The ledger of all the bills', body: filler }, { body: 'ledger '.repeat(500) }]))

test('as one thing before the same words in a title', () => {
  expect(rank('run_id', { body: `run_id ${filler}` }, true)).toBeGreaterThan(
    rank('run_id', { title: 'Run', body: 'id' }),
  )
  const apart = { title: 'Idle run', headings: ['Run idle'], body: 'idle run '.repeat(50) }
  const long = { body: `run_id ${filler.repeat(20)}` }
  for (const query of ['run_id', 'run-id', 'run_id idle', 'src/run_id'])
    expect([query, rank(query, long, true) > rank(query, apart)]).toEqual([query, true])
})
