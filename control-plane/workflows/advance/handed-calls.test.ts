import { expect, test } from 'vitest'
import type { CallRow } from '../../resources/workflows/call-store.ts'
import { HandedCalls } from './handed-calls.ts'

const callOf = (text: string) => ({ args: '', result: text }) as CallRow
const sizes = (handed: HandedCalls) => ['a', 'b', 'c'].map((id) => handed.of(id).length)

test('the runs that moved last are kept, as far as there is room', () => {
  const handed = new HandedCalls(10)
  handed.keep('a', [callOf('1234')])
  handed.keep('b', [callOf('12'), callOf('34')])
  expect(sizes(handed)).toEqual([1, 2, 0])
  handed.keep('a', [callOf('1234'), callOf('5')])
  handed.keep('c', [callOf('12')])
  expect(sizes(handed)).toEqual([2, 0, 1])
  handed.keep('c', [callOf('x'.repeat(11))])
  expect(sizes(handed)).toEqual([2, 0, 0])
  handed.forget('a')
  handed.keep('b', [callOf('x'.repeat(10))])
  expect(sizes(handed)).toEqual([0, 1, 0])
})
