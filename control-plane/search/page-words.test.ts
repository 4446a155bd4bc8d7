import { expect, test } from 'vitest'
import { pageWords } from './page-words.ts'

test('each word stands in the narrowest part that has it', () => {
  const { byPart, title, headings, counts, length } = pageWords({
    title: 'Roll back',
    headings: ['Back to run_id'],
    body: 'Roll forward forward forward, run_id.',
  })
  expect(byPart).toEqual({
    title: ['roll', 'back'],
    heading: ['to', 'run', 'id', 'runid'],
    often: ['forward'],
    body: [],
  })
  expect([title, headings, counts, length]).toEqual([' roll back ', ' back to run id runid ', ' forward:3 ', 6])
})

test('the most frequent words are counted where there are too many', () => {
  const words = Array.from({ length: 5_000 }, (_, i) => `w${i} w${i}`)
  const { counts } = pageWords({ title: '', headings: [], body: `${words.join(' ')} last last last` })
  expect(counts.startsWith(' last:3 w0:2 ')).toBe(true)
  expect(counts.length).toBeLessThanOrEqual(8_001)
})

test('what is folded to much more than a page may have is bounded', () => {
  const body = Array.from({ length: 20_000 }, (_, i) => `ﷺx${i}`).join('')
  const { byPart } = pageWords({ title: '', headings: [], body })
  const bytes = Object.values(byPart)
    .flat()
    .reduce((sum, word) => sum + Buffer.byteLength(word), 0)
  expect(bytes).toBeLessThanOrEqual(700_000)
})
