import { expect, test } from 'vitest'
import { nearest } from './nearest.ts'

const known = ['status', 'role', 'limit', 'startingAfter']

test.each([
  ['stauts', 'status'],
  ['Status', 'status'],
  ['statuses', 'status'],
  ['starting_after', 'startingAfter'],
  ['rol', 'role'],
  ['colour', null],
  ['', null],
])('%s means %s', (word, meant) => {
  expect(nearest(word, known)).toBe(meant)
})
