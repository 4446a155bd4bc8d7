import { idFrom } from '../../../shared/lib/ids.ts'
import { expect, test } from 'vitest'
import type { CallRow } from '../../resources/workflows/call-store.ts'
import { HandedCalls } from './handed-calls.ts'

const callOf = (text: string) => ({ args: '', result: text }) as CallRow
const sizes = (handed: HandedCalls) => ['a', 'b', 'c'].map((id) => handed.of(idFrom(id)).length)

test('the runs that moved last are kept, as far as there is room for their texts and themselves', () => {
  const own = 1_024
  const handed = new HandedCalls(3 * own + 10)
  handed.keep(idFrom('a'), [callOf('1234')])
  handed.keep(idFrom('b'), [callOf('12'), callOf('34')])
  expect(sizes(handed)).toEqual([1, 2, 0])
  handed.keep(idFrom('a'), [callOf('1234'), callOf('5')])
  expect(sizes(handed)).toEqual([2, 0, 0])
  handed.keep(idFrom('c'), [callOf('12345')])
  expect(sizes(handed)).toEqual([2, 0, 1])
  handed.keep(idFrom('c'), [callOf('123456')])
  expect(sizes(handed)).toEqual([0, 0, 1])
  handed.keep(idFrom('c'), [callOf('x'.repeat(2 * own + 11))])
  expect(sizes(handed)).toEqual([0, 0, 0])
  handed.keep(idFrom('b'), [callOf('x'.repeat(2 * own + 10))])
  expect(sizes(handed)).toEqual([0, 1, 0])
  handed.forget(idFrom('b'))
  handed.keep(idFrom('a'), [callOf('1'), callOf('2'), callOf('3')])
  expect(sizes(handed)).toEqual([3, 0, 0])
})
