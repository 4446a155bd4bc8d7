import type { FailureKind } from '../../device-manager/harness/adapter.ts'
import type { ExitReason } from '../../shared/runs/exit-reasons.ts'
import type { StubScenario, StubStep } from './stub-llm.ts'

/**
 * What can happen to a run whatever its harness, and what svc says of it: the same for all. docs/harnesses.md has the table of what
 * each harness does instead.
 */
export interface HarnessCase {
  /** What the scripted model's server does; null: nothing listens there. */
  script: StubScenario | null
  exitReason: ExitReason
  message: RegExp | null
  failure?: FailureKind
  /** The session is full, so that the next run begins another. */
  losesSession?: true
}

const always = (step: StubStep): StubScenario => ({ loop: true, steps: [step] })
const failing = (status: number, more: Omit<NonNullable<StubStep['error']>, 'status'> = {}) =>
  always({ error: { status, retryAfter: 0, ...more } })
const shell = (command: string): StubStep => ({ tool: { kind: 'shell', command } })

/** Why the call of the case `denied` is denied. */
export const denial = 'Bash(touch forbidden.txt) was denied: the rule Bash(touch *) forbids it. Go on without it.'

export const harnessCases = {
  cut_off: {
    script: always({ text: 'Half of the ans', stopReason: 'max_tokens' }),
    exitReason: 'error',
    message: /^The model's answer was cut off at its output limit/,
    failure: 'output_limit',
  },
  dropped: {
    script: always({ text: 'An answer that is long enough to break off', cutAfter: 4 }),
    exitReason: 'error',
    message: /connect|disconnect|dropped/i,
    failure: 'connection',
  },
  refused: { script: null, exitReason: 'error', message: /connect|reach/i, failure: 'connection' },
  overloaded: { script: failing(529), exitReason: 'error', message: /529/, failure: 'provider' },
  unavailable: { script: failing(503), exitReason: 'error', message: /503/, failure: 'provider' },
  rate_limit: { script: failing(429), exitReason: 'rate_limited', message: /429/, failure: 'rate_limit' },
  unauthorised: {
    script: failing(401),
    exitReason: 'harness_start_failed',
    message: /^The provider refused the sign-in \(.*401.*\): sign in again with /,
    failure: 'unauthorised',
  },
  too_long: {
    script: failing(400, {
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
      message: 'prompt is too long: 3 tokens > 2 maximum',
    }),
    exitReason: 'error',
    message: /too long|full|ran out of room/i,
    failure: 'context_full',
    losesSession: true,
  },
  killed: {
    script: { steps: [shell('touch begun'), { hang: true }] },
    exitReason: 'error',
    message: /^\S+( program)? was killed by SIGKILL (in the middle of|without) [a-z ]+\.$/,
  },
  denied: {
    script: { steps: [{ text: 'I do it.', ...shell('touch forbidden.txt') }, { text: 'Then not.' }] },
    exitReason: 'completed',
    message: null,
  },
  unknown_tool: {
    script: { steps: [{ tool: { name: 'no_such_tool', input: {} } }, { text: 'Done without.' }] },
    exitReason: 'completed',
    message: null,
  },
} as const satisfies Record<string, HarnessCase>
export type CaseName = keyof typeof harnessCases
export const caseNames = Object.keys(harnessCases) as CaseName[]

export type RealHarness = 'claude' | 'codex' | 'opencode' | 'qwen'

/** What a program does otherwise, and svc cannot see. Such a case is not played. */
export const notAsOthers: Partial<Record<RealHarness, Partial<Record<CaseName, string>>>> = {
  qwen: {
    cut_off: 'Qwen Code asks for the rest several times, and then says that its turn ended well.',
    unavailable: 'Qwen Code asks again for more than seven minutes, without a word.',
    rate_limit: 'Qwen Code asks again for more than seven minutes, without a word.',
  },
}

/** The folder of the recordings of a harness in test/fixtures/harness, and the beginning of their names. */
export const recordedAs: Readonly<Record<RealHarness, { folder: string; prefix: string }>> = {
  claude: { folder: 'claude', prefix: 'case-' },
  codex: { folder: 'codex', prefix: 'case-' },
  opencode: { folder: 'opencode', prefix: 'case-' },
  qwen: { folder: 'acp', prefix: 'qwen-case-' },
}
export const realHarnesses = Object.keys(recordedAs) as RealHarness[]
