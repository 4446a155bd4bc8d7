import type { FailureKind, HarnessOutcome, ProcessExit } from '../adapter.ts'
import { unaskedMessage, type Unasked } from '../parts/asked-calls.ts'
import { cutOff, failureEnding, failureKind, type Ending } from '../parts/failure.ts'
import { leftEarly } from '../parts/left-early.ts'
import { signInHint, signInWith } from './detect.ts'
import type { HarnessError } from './wire.ts'

/** Why svc ended the session's work; the first reason counts. */
export type Halt =
  | { why: 'asked' }
  | ({ why: 'unasked' } & Unasked)
  | { why: 'turns'; turns: number }
  | { why: 'overflow' }
  | { why: 'signed_out' }
  | { why: 'long_wait'; message: string; until: number; waitMs: number }
  | { why: 'lost'; reason: string }

/** The facts that a dialogue knows when its process has left. */
export interface OutcomeFacts {
  resumeSessionId: string | null
  sessionId: string | null
  /** Why opencode took the session or the prompt not at all. */
  refusal: { message: string; isUnknownSession: boolean } | null
  halt: Halt | null
  /** The session has come to rest after the prompt. */
  isIdle: boolean
  /** Why the model's last answer ended, as the provider says it; null: it never answered. */
  lastReason: string | null
  /** The last error of the session after which it did not go on. */
  lastError: HarnessError | null
  /** The model said or did something. */
  didWork: boolean
  stderrTail: string
}

/** An answer that ended like this is none. */
const brokenOff = new Set(['tool-calls', 'content-filter', 'error'])

/**
 * Returns how the run ended. What came in the session decides, not the exit status: the server exits when svc closes its input.
 * Why each:
 *
 * - A failed request to the model: see `failureEnding`. A provider that asks for a long wait is a limit or trouble of its own.
 * - No provider: `harness_start_failed`, since a retry cannot help.
 * - A context that stays full after it was compacted: `error`, and the session is not gone on with.
 * - A session that does not exist, or belongs to another folder: `resumeRefused`; the next run begins a new one.
 */
export function opencodeOutcome(facts: OutcomeFacts, exit: ProcessExit): HarnessOutcome {
  const { refusal, halt } = facts
  if (refusal?.isUnknownSession === true) {
    return {
      exitReason: exit.stoppedFor ?? 'harness_start_failed',
      message: refusal.message,
      sessionId: null,
      resumeRefused: true,
    }
  }
  const kept = { sessionId: facts.sessionId, resumeRefused: false }
  if (exit.stoppedFor !== null) return { ...kept, exitReason: exit.stoppedFor, message: null }
  if (refusal !== null)
    return { ...kept, exitReason: 'harness_start_failed', message: `opencode refused to start: ${refusal.message}` }
  if (halt !== null && halt.why !== 'lost') return { ...kept, ...halted(halt, facts) }
  if (!facts.isIdle) return { ...kept, ...leftInTheMiddle(facts, exit) }
  if (facts.lastError !== null) return { ...kept, ...failed(facts, facts.lastError) }
  if (facts.lastReason === 'length') return { ...kept, ...cutOff() }
  if (facts.lastReason === null || brokenOff.has(facts.lastReason)) {
    const how = facts.lastReason === null ? 'without an answer' : `in the middle (${facts.lastReason})`
    return { ...kept, exitReason: 'error', message: `opencode ended its turn ${how}.` }
  }
  return { ...kept, exitReason: 'completed', message: null }
}

function halted(halt: Exclude<Halt, { why: 'lost' }>, { didWork }: OutcomeFacts): Ending {
  switch (halt.why) {
    case 'asked':
      return { exitReason: 'error', message: 'The run was told to end, since a person is asked.' }
    case 'unasked':
      return { exitReason: 'error', message: unaskedMessage('opencode', halt) }
    case 'turns': {
      const message = `opencode reached its maximum number of turns (${halt.turns}).`
      return { exitReason: 'budget_exceeded', message }
    }
    case 'overflow': {
      const message = 'The context of the session is full, also after opencode made it smaller.'
      return { exitReason: 'error', message, sessionId: null, failure: 'context_full' }
    }
    case 'signed_out': {
      const exitReason = didWork ? 'error' : 'harness_start_failed'
      return { exitReason, message: signInHint, failure: 'unauthorised' }
    }
    case 'long_wait': {
      const minutes = Math.ceil(halt.waitMs / 60_000)
      const message = `${halt.message} The provider is to be asked again in ${minutes} min.`
      const failure = failureKind({ message: halt.message }) === 'rate_limit' ? 'rate_limit' : 'provider'
      if (failure === 'provider') return { exitReason: 'error', message, failure }
      return { exitReason: 'rate_limited', message, limitResetsAt: halt.until, failure }
    }
  }
}

/** opencode's own names; what an `APIError` is, status and words tell. */
const kinds: Readonly<Record<string, FailureKind>> = {
  ProviderAuthError: 'unauthorised',
  ContextOverflowError: 'context_full',
  MessageOutputLengthError: 'output_limit',
}

function failed({ didWork }: OutcomeFacts, { name, data }: HarnessError): Ending {
  if (name === 'MessageAbortedError') return { exitReason: 'error', message: 'opencode was interrupted from outside.' }
  const message = data.message === '' ? name : data.message
  const failure = { message, httpStatus: data.statusCode ?? null, kind: kinds[name] ?? null }
  return failureEnding(failure, { signInHint, signInWith, didWork })
}

function leftInTheMiddle({ didWork, stderrTail, halt }: OutcomeFacts, exit: ProcessExit): Ending {
  // Its events end with it where it was killed.
  const why = halt?.why === 'lost' && exit.signal === null ? ` (${halt.reason})` : ''
  const message = leftEarly('opencode', exit, { stderrTail, when: `in the middle of its work${why}` })
  return { exitReason: didWork ? 'error' : 'harness_start_failed', message }
}
