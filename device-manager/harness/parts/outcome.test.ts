import { expect, it } from 'vitest'
import type { ProcessExit } from '../adapter.ts'
import { completed, turnOutcome, type OutcomeParts } from './outcome.ts'
import type { TurnFacts } from './turn.ts'

const quiet: TurnFacts = {
  resumeSessionId: 's1',
  sessionId: 's2',
  didWork: false,
  refusal: null,
  unasked: null,
  maxTurnsReached: null,
  stderrTail: '',
}
const left: ProcessExit = { exitCode: 0, signal: null, stoppedFor: null }
const parts: OutcomeParts = { program: 'Finch', unknownSession: null, ended: () => completed }

it.each<[string, Partial<TurnFacts>, Partial<ProcessExit>, Partial<OutcomeParts>, object]>([
  ['what the harness said of its turn', {}, {}, {}, { exitReason: 'completed', sessionId: 's2' }],
  [
    'before that its refusal',
    { refusal: 'no room' },
    {},
    {},
    { exitReason: 'harness_start_failed', message: 'Finch refused to start: no room', sessionId: 's2' },
  ],
  [
    'before that a call in which the lists had no say',
    { refusal: 'no room', unasked: { name: 'Bash', wasAsked: false } },
    {},
    { unaskedFix: ' Allow it.' },
    {
      exitReason: 'error',
      message:
        "Finch ran Bash without asking first, so the run was stopped: the agent's lists would not have held. Allow it.",
    },
  ],
  [
    'before that the reason of the run host',
    { refusal: 'no room', unasked: { name: 'Bash', wasAsked: false } },
    { stoppedFor: 'interrupted' },
    {},
    { exitReason: 'interrupted', message: null, resumeRefused: false },
  ],
  [
    'before all that the session is not there, so that none is gone on with',
    { unasked: { name: 'Bash', wasAsked: false } },
    {},
    { unknownSession: 'It is gone.' },
    { exitReason: 'harness_start_failed', message: 'It is gone.', sessionId: null, resumeRefused: true },
  ],
])('the outcome of a run is %s', (_, facts, exit, more, outcome) => {
  expect(turnOutcome({ ...quiet, ...facts }, { ...left, ...exit }, { ...parts, ...more })).toMatchObject(outcome)
})

it('an ending may take the session away', () => {
  const ended = () => ({ ...completed, sessionId: null })
  expect(turnOutcome(quiet, left, { ...parts, ended }).sessionId).toBeNull()
})
