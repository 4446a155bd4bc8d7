import { expect, test } from 'vitest'
import { readQuery } from './query.ts'
import { snippetOf } from './snippet.ts'
import { cpuMsOf } from '../../test/kit/cpu-time.ts'

const filler = 'filler '.repeat(60)
const shown = (query: string, ...bodies: string[]) => {
  const chunks = bodies.map((body) => ({ heading: '', start: 0, body }))
  const found = snippetOf(readQuery(query), chunks)!
  return { text: found.text, words: found.ranges.map(({ start, end }) => found.text.slice(start, end)) }
}

test('the excerpt is the place where the words stand together, or as one', () => {
  const { text, words } = shown('run_id', `An idle run waits. ${filler} The run_id names it. ${filler}`)
  expect(text).toContain('The run_id names it.')
  expect(words).toEqual(['run', 'id'])
  expect(shown('roll back', `Roll dice. ${filler} How to roll back. ${filler} Look back.`).words).toEqual([
    'roll',
    'back',
  ])
  expect(shown('src/main.ts', `main src ts ${filler} main ${filler} see src/main.ts now`).text).toContain(
    'see src/main.ts',
  )
  expect(shown('port', `The first port. ${filler} The port, the port.`).text).toMatch(/^The first port/)
  expect(shown('回滚', `滚动。${filler}如何回滚它`).text).toContain('如何回滚它')
})

test('of several chunks the one with most of the words', () => {
  expect(shown('roll back', 'Roll on.', `${filler} back, then roll`, 'Look back.').text).toContain('back, then roll')
})

test('a chunk of nothing but the words takes a moment', () => {
  expect(cpuMsOf(() => shown('a b c d e f g h i j', 'a b c d e f g h i j '.repeat(80)))).toBeLessThan(1_000)
})
