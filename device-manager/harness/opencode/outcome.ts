import type { HarnessOutcome, ProcessExit } from '../adapter.ts'
import { unaskedMessage, type Unasked } from '../parts/asked-calls.ts'
import { signInHint } from './detect.ts'
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

const signInAgain = 'Sign in again: run `opencode auth login`.'
const limited = /\b429\b|rate.?limit|too many requests|usage limit|quota|resource.?exhausted|free usage/i
/** An answer that ended like this is none. */
const brokenOff = new Set(['tool-calls', 'content-filter', 'error'])

/**
 * Returns how the run ended. What came in the session decides, not the exit status: the server exits when svc closes its input.
 * Why each:
 *
 * - 429 and a wait that the provider asks for are `rate_limited`, other refusals of it `error`.
 * - No provider, or refused credentials before anything was done: `harness_start_failed`, since a retry cannot help.
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
  if (facts.lastReason === null || brokenOff.has(facts.lastReason)) {
    const how = facts.lastReason === null ? 'without an answer' : `in the middle (${facts.lastReason})`
    return { ...kept, exitReason: 'error', message: `opencode ended its turn ${how}.` }
  }
  return { ...kept, exitReason: 'completed', message: null }
}

type Ending = Pick<HarnessOutcome, 'exitReason' | 'message' | 'limitResetsAt' | 'providerFailed'> & { sessionId?: null }

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
      return { exitReason: 'error', message, sessionId: null }
    }
    case 'signed_out':
      return { exitReason: didWork ? 'error' : 'harness_start_failed', message: signInHint }
    case 'long_wait': {
      const minutes = Math.ceil(halt.waitMs / 60_000)
      const message = `${halt.message} The provider is to be asked again in ${minutes} min.`
      if (!limited.test(halt.message)) return { exitReason: 'error', message, providerFailed: true }
      return { exitReason: 'rate_limited', message, limitResetsAt: halt.until }
    }
  }
}

function failed({ didWork }: OutcomeFacts, { name, data }: HarnessError): Ending {
  const { statusCode } = data
  const message = data.message === '' ? name : data.message
  if (statusCode === 429 || (name === 'APIError' && statusCode == null && limited.test(message)))
    return { exitReason: 'rate_limited', message }
  if (statusCode === 401 || statusCode === 403 || name === 'ProviderAuthError')
    return { exitReason: didWork ? 'error' : 'harness_start_failed', message: `${message} ${signInAgain}` }
  if (name === 'ContextOverflowError') return { exitReason: 'error', message, sessionId: null }
  if (name === 'MessageAbortedError') return { exitReason: 'error', message: 'opencode was interrupted from outside.' }
  if (/model not found/i.test(message))
    return { exitReason: 'error', message: `${message} Choose another model for the agent.` }
  const providerFailed = (statusCode ?? 0) >= 500
  return { exitReason: 'error', message, ...(providerFailed && { providerFailed }) }
}

function leftInTheMiddle({ didWork, stderrTail, halt }: OutcomeFacts, { exitCode, signal }: ProcessExit): Ending {
  const how = signal === null ? `exit status ${exitCode ?? 'unknown'}` : `signal ${signal}`
  const said = stderrTail.trim().split('\n').at(-1)?.slice(0, 500) ?? ''
  const why = halt?.why === 'lost' ? `; ${halt.reason}` : ''
  const message = `opencode left in the middle of its work (${how}${why})${said === '' ? '.' : `: ${said}`}`
  return { exitReason: didWork ? 'error' : 'harness_start_failed', message }
}
