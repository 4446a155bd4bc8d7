import { expect, test } from 'vitest'
import { bodyWords, indexedTitleWords } from './page-words.ts'

test('each word is known with the parts that have it', () => {
  const words = bodyWords({ headings: ['Back to run_id'], body: 'Roll forward forward forward, run_id.' })
  expect(words).toEqual({
    heading: ' back to run id runid ',
    often: ' forward ',
    body: ' roll forward run id runid ',
    headings: ' back to run id runid ',
    counts: ' forward:3 ',
    length: 6,
  })
  expect(indexedTitleWords('Roll back, roll on')).toBe(' roll back on ')
  expect(bodyWords({ headings: [], body: '' })).toMatchObject({ body: ' ', length: 0 })
})

test('the most frequent words are counted where there are too many', () => {
  const words = Array.from({ length: 5_000 }, (_, i) => `w${i} w${i}`)
  const { counts } = bodyWords({ headings: [], body: `${words.join(' ')} last last last` })
  expect(counts.startsWith(' last:3 w0:2 ')).toBe(true)
  expect(counts.length).toBeLessThanOrEqual(8_001)
})

test('what is folded to much more than a page may have is bounded', () => {
  const body = Array.from({ length: 80_000 }, (_, i) => `ﷺx${i} `).join('')
  const { heading, often, body: all } = bodyWords({ headings: [body], body })
  expect(Buffer.byteLength(heading + often + all)).toBeLessThanOrEqual(1_000_003)
  expect(Buffer.byteLength(all)).toBeGreaterThan(890_000)
})
