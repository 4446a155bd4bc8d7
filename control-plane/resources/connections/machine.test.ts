import { expect, test } from 'vitest'
import { nextStatus } from './machine.ts'

const events = ['begin', 'connect', 'approve', 'mismatch', 'withdraw', 'lapse'] as const

test('each event in each state does what the documents say, and nothing else', () => {
  const table = (['none', 'pending', 'active', 'expired', 'revoked'] as const).map((state) => [
    state,
    ...events.map((event) => nextStatus(state, event) ?? '-'),
  ])
  expect(table).toEqual([
    //          begin      connect   approve   mismatch   withdraw   lapse
    ['none', 'pending', 'active', '-', '-', '-', '-'],
    ['pending', 'pending', '-', 'active', 'revoked', 'removed', 'expired'],
    ['active', '-', '-', '-', '-', 'revoked', 'expired'],
    ['expired', 'pending', 'active', '-', '-', 'revoked', '-'],
    ['revoked', 'pending', 'active', '-', '-', 'revoked', '-'],
  ])
})
