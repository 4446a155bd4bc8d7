import { expect, test } from 'vitest'
import { didYouMean, nearest } from './nearest.ts'

test.each([
  ['tsk', ['task', 'run', 'wiki'], ['task']],
  ['lsit', ['list', 'get'], ['list']],
  ['auto', ['automation', 'auth', 'agent'], ['auth', 'automation']],
  ['x', ['task', 'run'], []],
  ['', ['a'], ['a']],
])('%s', (word, candidates, found) => expect(nearest(word, candidates)).toEqual(found))

test('a word of any length costs little', () => {
  expect(didYouMean('x'.repeat(1_000_000), ['task', 'x'.repeat(45)])).toBe('Did you mean `' + 'x'.repeat(45) + '`?')
})
