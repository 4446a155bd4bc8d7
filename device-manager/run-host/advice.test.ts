import { expect, it } from 'vitest'
import { advised } from './advice.ts'

it.each([
  [{ exitReason: 'error' }, 'Credit balance is too low', 'Credit balance is too low. Add credit at the provider'],
  [
    { exitReason: 'error' },
    'There is an issue with the selected model (x). It may not exist. Run --model to pick a different model.',
    'different model. Choose another model for the agent (`svc',
  ],
  [{ exitReason: 'rate_limited' }, 'Too many requests', 'Too many requests. Nobody said when'],
  [{ exitReason: 'error', providerFailed: true }, 'API Error: 529 Overloaded', 'Overloaded. The provider has trouble'],
] as const)('%j: %s', (ended, message, expected) => {
  expect(advised(ended, message)).toContain(expected)
})

it.each([
  [{ exitReason: 'completed' }, null],
  [{ exitReason: 'error' }, 'claude was interrupted from outside.'],
  [{ exitReason: 'rate_limited', limitResetsAt: 7 }, 'The limit is reached.'],
  [{ exitReason: 'error' }, 'The model x was not found. Choose another model for the agent.'],
  [{ exitReason: 'harness_start_failed' }, 'Billing is off. Sign in again: run `claude` once.'],
] as const)('%j: %s stays as it is', (ended, message) => {
  expect(advised(ended, message)).toBe(message)
})
