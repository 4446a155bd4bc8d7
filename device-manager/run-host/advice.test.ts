import { expect, it } from 'vitest'
import { advised } from './advice.ts'

it.each([
  [{ exitReason: 'error' }, 'Credit balance is too low', 'Credit balance is too low. Add credit at the provider'],
  [
    { exitReason: 'error', failure: 'unknown_model' },
    'There is an issue with the selected model (x). It may not exist. Run --model to pick a different model.',
    'different model. Choose another model for the agent (`svc',
  ],
  [{ exitReason: 'rate_limited' }, 'Too many requests', 'Too many requests. Nobody said when'],
  [{ exitReason: 'error', failure: 'provider' }, 'API Error: 529 Overloaded', 'Overloaded. The provider has trouble'],
  [
    { exitReason: 'error', failure: 'connection' },
    'Refused (x)',
    'Refused (x) The provider has trouble, or is not reached',
  ],
  [{ exitReason: 'error', failure: 'output_limit' }, 'Cut off.', 'Cut off. Ask for less'],
  [{ exitReason: 'error', failure: 'context_full' }, 'Too long', 'Too long. The next run'],
] as const)('%j: %s', (ended, message, expected) => {
  expect(advised(ended, message)).toContain(expected)
})

it.each([
  [{ exitReason: 'completed' }, null],
  [{ exitReason: 'error' }, 'claude was interrupted from outside.'],
  [{ exitReason: 'rate_limited', limitResetsAt: 7 }, 'The limit is reached.'],
  [{ exitReason: 'error', failure: 'other' }, 'The model is tired.'],
  [{ exitReason: 'harness_start_failed' }, 'Billing is off: sign in again with `claude`.'],
] as const)('%j: %s stays as it is', (ended, message) => {
  expect(advised(ended, message)).toBe(message)
})

it('names a backup model only where the harness takes one', () => {
  const ended = { exitReason: 'error', failure: 'provider' } as const
  expect(advised(ended, '529')).toMatch(/retry the run later, or give the agent a backup model\.$/)
  expect(advised(ended, '529', ['backupModel'])).toMatch(/retry the run later\.$/)
})
