import { expect, it } from 'vitest'
import { createTranscript } from './transcript.ts'

it('prints decisions about tool calls, and questions to a person', () => {
  const transcript = createTranscript()
  const permission = (data: Record<string, unknown>) =>
    transcript.lines({ kind: 'permission', data: { name: 'Bash', ...data } })
  expect(permission({ decision: 'allow', rule: 'approval:apr_1' })).toEqual(['[permission] Bash: allow'])
  expect(permission({ decision: 'ask', ask: { safeSummary: 'Bash: npm publish' } })).toEqual([
    '[permission] a person is asked: Bash: npm publish',
  ])
})
