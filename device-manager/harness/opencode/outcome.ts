import type { FailureKind, HarnessOutcome, ProcessExit } from '../adapter.ts'
import { unaskedMessage, type Unasked } from '../parts/asked-calls.ts'
import { cutOff, failureEnding, failureKind, type Ending } from '../parts/failure.ts'
import { completed, failed, interruptedOutside, leftTurn, turnOutcome, turnsSpent } from '../parts/outcome.ts'
import type { TurnFacts } from '../parts/turn.ts'
import { opencodeSignInHint, opencodeSignInWith } from './detect.ts'
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

/** The facts that opencode's dialogue adds to those of every turn. */
export interface OwnOpencodeFacts {
  /** Why it refused: the session is not there, or belongs to another folder. */
  isSessionUnknown: boolean
  halt: Halt | null
  /** The session has come to rest after the prompt. */
  isIdle: boolean
  /** Why the model's last answer ended, as the provider says it; null: it never answered. */
  lastReason: string | null
  /** The last error of the session after which it did not go on. */
  lastError: HarnessError | null
}
/** The first halt counts, so a call that was not asked and the limit of turns are halts. */
export type OpencodeFacts = TurnFacts & OwnOpencodeFacts

/** An answer that ended like this is none. */
const brokenOff = new Set(['tool-calls', 'content-filter', 'error'])

/**
 * Returns how the run ended. What came in the session decides, not the exit status: the server exits when svc closes its input.
 * Why each:
 *
 * - A failed request to the model: see `failureEnding`. A provider that asks for a long wait is a limit or trouble of its own.
 * - No provider: `harness_start_failed`, since a retry cannot help.
 * - A context that stays full after it was compacted: `error`, and the session is not gone on with.
 */
export function opencodeOutcome(facts: OpencodeFacts, exit: ProcessExit): HarnessOutcome {
  return turnOutcome(facts, exit, {
    program: 'opencode',
    unknownSession: facts.isSessionUnknown ? facts.refusal : null,
    ended: () => endingOf(facts, exit),
  })
}

function endingOf(facts: OpencodeFacts, exit: ProcessExit): Ending {
  const { halt, isIdle, lastError, lastReason } = facts
  if (halt !== null && halt.why !== 'lost') return halted(halt, facts)
  if (!isIdle) return leftInTheMiddle(facts, exit)
  if (lastError !== null) return byError(facts, lastError)
  if (lastReason === 'length') return cutOff()
  if (lastReason !== null && !brokenOff.has(lastReason)) return completed
  return failed(
    `opencode ended its turn ${lastReason === null ? 'without an answer' : `in the middle (${lastReason})`}.`,
  )
}

function halted(halt: Exclude<Halt, { why: 'lost' }>, { didWork }: OpencodeFacts): Ending {
  switch (halt.why) {
    case 'asked':
      return failed('The run was told to end, since a person is asked.')
    case 'unasked':
      return failed(unaskedMessage('opencode', halt))
    case 'turns':
      return turnsSpent('opencode', halt.turns)
    case 'overflow': {
      const message = 'The context of the session is full, also after opencode made it smaller.'
      return { ...failed(message), sessionId: null, failure: 'context_full' }
    }
    case 'signed_out': {
      const exitReason = didWork ? 'error' : 'harness_start_failed'
      return { exitReason, message: opencodeSignInHint, failure: 'unauthorised' }
    }
    case 'long_wait': {
      const minutes = Math.ceil(halt.waitMs / 60_000)
      const message = `${halt.message} The provider is to be asked again in ${minutes} min.`
      const failure = failureKind({ message: halt.message }) === 'rate_limit' ? 'rate_limit' : 'provider'
      if (failure === 'provider') return { ...failed(message), failure }
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

function byError({ didWork }: OpencodeFacts, { name, data }: HarnessError): Ending {
  if (name === 'MessageAbortedError') return interruptedOutside('opencode')
  const message = data.message === '' ? name : data.message
  const failure = { message, httpStatus: data.statusCode ?? null, kind: kinds[name] ?? null }
  return failureEnding(failure, { signInHint: opencodeSignInHint, signInWith: opencodeSignInWith, didWork })
}

function leftInTheMiddle(facts: OpencodeFacts, exit: ProcessExit): Ending {
  const { halt, didWork: hasBegun } = facts
  // Its events end with it where it was killed.
  const why = halt?.why === 'lost' && exit.signal === null ? ` (${halt.reason})` : ''
  return leftTurn('opencode', exit, { facts, when: `in the middle of its work${why}`, hasBegun })
}
