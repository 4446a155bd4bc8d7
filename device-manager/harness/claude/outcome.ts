import type { ExitReason } from '../../../shared/runs/exit-reasons.ts'
import type { HarnessOutcome, ProcessExit } from '../adapter.ts'
import { unaskedMessage, type Unasked } from '../parts/asked-calls.ts'
import { cutText } from '../parts/utf8.ts'
import { signInHint } from './detect.ts'
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
 * - 429 is `rate_limited`. Overload (529, 503) and other failures of the provider are `error`, and said to be its own: the
 *   control plane makes `circuit_breaker` of several in a row.
 * - No credentials, or refused ones before anything was done: `harness_start_failed`, since a retry cannot help.
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
  // Such a session is full: resumed, it could only fail the same way.
  const sessionId = result.terminal_reason === 'prompt_too_long' ? null : facts.sessionId
  return { ...kept, sessionId, ...byResult(facts, result) }
}

type Ending = Pick<HarnessOutcome, 'limitResetsAt' | 'providerFailed'> & {
  exitReason: ExitReason
  message: string | null
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

function byError(facts: OutcomeFacts, result: ResultLine): Ending {
  const errorClass = facts.lastError?.class ?? null
  const httpStatus = result.api_error_status ?? facts.lastError?.httpStatus ?? null
  const message = errorText(result)
  if (httpStatus === 429 || (errorClass === 'rate_limit' && httpStatus === null)) {
    const { limitResetsAt } = facts
    const told = message ?? 'The provider limits the rate of requests.'
    return { exitReason: 'rate_limited', message: told, ...(limitResetsAt !== null && { limitResetsAt }) }
  }
  if (errorClass === 'authentication_failed' || httpStatus === 401) {
    if (facts.didWork) return { exitReason: 'error', message: message ?? 'The provider refused the credentials.' }
    const said = httpStatus === null || message === null ? signInHint : `${message} Sign in again: run \`claude\` once.`
    return { exitReason: 'harness_start_failed', message: said }
  }
  const providerFailed = httpStatus === null ? errorClass === 'server_error' : httpStatus >= 500
  return {
    exitReason: 'error',
    message: message ?? 'claude ended with an error.',
    ...(providerFailed && { providerFailed }),
  }
}

/** Killed, or never started well: no result is no proof of completion, whatever the status. */
function withoutResult(facts: OutcomeFacts, exit: ProcessExit): Ending {
  const how = exit.signal === null ? `exited with status ${exit.exitCode ?? 'unknown'}` : `was killed by ${exit.signal}`
  const said = lastLine(facts.stderrTail)
  const message = `claude ${how} without a result${said === null ? '.' : `: ${said}`}`
  return { exitReason: facts.sessionId === null && exit.signal === null ? 'harness_start_failed' : 'error', message }
}

function errorText(result: ResultLine): string | null {
  const text = result.errors?.join('\n') ?? result.result ?? ''
  return text.trim() === '' ? null : cutText(text.trim(), 2_000).text
}

function lastLine(text: string): string | null {
  const line = text.trim().split('\n').at(-1)?.trim() ?? ''
  return line === '' ? null : cutText(line, 1_000).text
}
