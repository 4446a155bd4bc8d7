import type { FailureKind, HarnessOutcome, ProcessExit } from '../adapter.ts'
import { unaskedMessage, type Unasked } from '../parts/asked-calls.ts'
import { failureEnding, type Ending } from '../parts/failure.ts'
import { leftEarly } from '../parts/left-early.ts'
import { cutText } from '../parts/utf8.ts'
import { signInHint, signInWith } from './detect.ts'
import type { ResultLine } from './wire.ts'

/** The facts that a dialogue knows when its process has left. */
export interface OutcomeFacts {
  resumeSessionId: string | null
  sessionId: string | null
  /** The last one; a turn that a late message started brings another. */
  result: ResultLine | null
  /** The last failed request to the model. */
  lastError: { class: string; httpStatus: number | null; message: string } | null
  /** When the account, whose limit is reached, may be used again (ms); null: it is not reached, or nobody said when. */
  limitResetsAt: number | null
  /** The model said or did something. */
  didWork: boolean
  /** A call that was made although the hook was not asked. */
  unasked: Unasked | null
  /** claude's refusal to install the hook. */
  hookRefusal: string | null
  stderrTail: string
}

const unknownSession = /No conversation found with session ID/

/**
 * Returns how the run ended. The result decides, not the exit status: a harness may linger after it and be killed. Why each:
 *
 * - A failed request to the model: see `failureEnding`.
 * - Turn and cost limits are `budget_exceeded`: the agent's own limit ended it, it did not fail.
 * - A session that does not exist: `resumeRefused`; it is forgotten, and the next run begins a new one.
 */
export function claudeOutcome(facts: OutcomeFacts, exit: ProcessExit): HarnessOutcome {
  const kept = { sessionId: facts.sessionId, resumeRefused: false }
  if (isResumeRefused(facts)) {
    const message = `The claude session ${facts.resumeSessionId} is not on this machine any more.`
    return { exitReason: exit.stoppedFor ?? 'harness_start_failed', message, sessionId: null, resumeRefused: true }
  }
  if (exit.stoppedFor !== null) return { ...kept, exitReason: exit.stoppedFor, message: null }
  if (facts.unasked !== null) return { ...kept, exitReason: 'error', message: unaskedMessage('claude', facts.unasked) }
  if (facts.hookRefusal !== null) {
    return { ...kept, exitReason: 'harness_start_failed', message: facts.hookRefusal }
  }
  if (facts.result === null) return { ...kept, ...withoutResult(facts, exit) }
  const { result } = facts
  return { ...kept, ...byResult(facts, result) }
}

function isResumeRefused({ resumeSessionId, result, stderrTail, sessionId }: OutcomeFacts): boolean {
  if (resumeSessionId === null || sessionId !== null) return false
  return result === null
    ? unknownSession.test(stderrTail)
    : (result.errors ?? []).some((error) => unknownSession.test(error))
}

function byResult(facts: OutcomeFacts, result: ResultLine): Ending {
  const reason = result.terminal_reason ?? null
  if (reason === 'max_turns' || result.subtype === 'error_max_turns') {
    return {
      exitReason: 'budget_exceeded',
      message: errorText(result) ?? 'claude reached its maximum number of turns.',
    }
  }
  if (reason === 'budget_exhausted' || result.subtype === 'error_max_budget_usd') {
    return { exitReason: 'budget_exceeded', message: errorText(result) ?? 'claude reached its cost limit.' }
  }
  if (reason?.startsWith('aborted') === true)
    return { exitReason: 'error', message: 'claude was interrupted from outside.' }
  if (result.is_error) return byError(facts, result)
  // A refusal looks like a success: no error, status 0.
  if (result.stop_reason === 'refusal') return { exitReason: 'error', message: 'The model refused to answer.' }
  if (reason !== null && reason !== 'completed') return { exitReason: 'error', message: `claude stopped: ${reason}.` }
  return { exitReason: 'completed', message: null }
}

/** claude's own names. `server_error` without a status is that of a connection. */
const kinds: Readonly<Record<string, FailureKind>> = {
  authentication_failed: 'unauthorised',
  max_output_tokens: 'output_limit',
  model_not_found: 'unknown_model',
}

function byError({ lastError, didWork, limitResetsAt }: OutcomeFacts, result: ResultLine): Ending {
  const httpStatus = result.api_error_status ?? lastError?.httpStatus ?? null
  const named = kinds[lastError?.class ?? ''] ?? null
  const withoutStatus = lastError?.class === 'rate_limit' ? 'rate_limit' : 'connection'
  const isUnanswered = httpStatus === null && ['rate_limit', 'server_error'].includes(lastError?.class ?? '')
  const isFull = result.terminal_reason === 'prompt_too_long'
  const kind = isFull ? 'context_full' : (named ?? (isUnanswered ? withoutStatus : null))
  const message = errorText(result) ?? (kind === 'unauthorised' ? '' : 'claude ended with an error.')
  return failureEnding({ message, httpStatus, kind }, { signInHint, signInWith, didWork, resetsAt: limitResetsAt })
}

/** Killed, or never started well: no result is no proof of completion, whatever the status. */
function withoutResult(facts: OutcomeFacts, exit: ProcessExit): Ending {
  const { sessionId, stderrTail } = facts
  const message = leftEarly('claude', exit, { stderrTail, when: 'without a result' })
  return { exitReason: sessionId === null && exit.signal === null ? 'harness_start_failed' : 'error', message }
}

function errorText(result: ResultLine): string | null {
  const text = result.errors?.join('\n') ?? result.result ?? ''
  return text.trim() === '' ? null : cutText(text.trim(), 2_000).text
}
