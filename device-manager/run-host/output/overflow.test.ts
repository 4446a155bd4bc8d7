import { expect, it } from 'vitest'
import { pendingEvent, type PendingEvent } from './event-lines.ts'
import { Overflow } from './overflow.ts'

const words = (text: string) => pendingEvent(1, { kind: 'text', data: { text } })
const filled = (...texts: string[]) => {
  const overflow = new Overflow('unsent_limit', 64 * 1024)
  for (const text of texts) overflow.push(words(text))
  return overflow
}
const told = (events: readonly PendingEvent[]) =>
  events.map(({ body }) => (body.kind === 'gap' ? body.data.bytes : body.kind === 'text' ? body.data.text : body.kind))
const long = 'x'.repeat(20_000)

it('the last words before what must be kept are kept with it, behind a gap for the rest', () => {
  expect(told(filled(long, long, long, long, 'The answer', ' is 7.').takeBefore(2))).toEqual([
    80_000,
    'The answer',
    ' is 7.',
  ])
})

it('no more of them than a few, so that the limit holds', () => {
  expect(told(filled('lost', long).takeBefore(2))).toEqual([20_004])
  const many = filled(...Array.from({ length: 200 }, () => 'x'.repeat(100))).takeBefore(2)
  expect(many.reduce((sum, { heldBytes }) => sum + heldBytes, 0)).toBeLessThanOrEqual(16 * 1024 + 128)
  expect(many.reduce((sum, { outputBytes }) => sum + outputBytes, 0)).toBe(20_000)
})

it('are told once', () => {
  const overflow = filled('one')
  expect(told(overflow.takeBefore(2))).toEqual(['one'])
  expect(overflow.takeBefore(3)).toEqual([])
  overflow.push(words('two'))
  expect(told(overflow.take(4))).toEqual(['two'])
})
