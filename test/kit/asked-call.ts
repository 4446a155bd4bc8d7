import type { AskedCall } from '../../shared/runs/asked-call.ts'

/** A call that a person is asked about. */
export function askedCallFixture(changes: Partial<AskedCall> = {}): AskedCall {
  return {
    toolCallId: 'toolu_1',
    name: 'Bash',
    inputDigest: 'a'.repeat(64),
    safeSummary: 'Bash: ls',
    toolArgs: { command: 'ls' },
    prompt: '@tester asks to use Bash.\n\nls',
    ...changes,
  }
}
