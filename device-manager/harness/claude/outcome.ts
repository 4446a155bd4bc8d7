import type { UsedLimit } from '../../../shared/device/used-limits.ts'
import type { FailureKind, HarnessOutcome, ProcessExit } from '../adapter.ts'
import { failureEnding, type Ending } from '../parts/failure.ts'
import { completed, failed, interruptedOutside, leftTurn, turnOutcome } from '../parts/outcome.ts'
import type { TurnFacts } from '../parts/turn.ts'
import { cutText } from '../parts/utf8.ts'
import { claudeSignInHint, claudeSignInWith } from './detect.ts'
import type { ClaudeResultLine } from './wire.ts'

/** The facts that claude's dialogue adds to those of every turn. */
export interface OwnClaudeFacts {
  /** The last one; a turn that a late message started brings another. */
  result: ClaudeResultLine | null
  /** The last failed request to the model. */
  lastError: { class: string; httpStatus: number | null; message: string } | null
  /** When the account, whose limit is reached, may be used again (ms); null: it is not reached, or nobody said when. */
  limitResetsAt: number | null
  /** By the names of claude's windows, as it told them last. */
  limitsUsed: Readonly<Record<string, UsedLimit>>
}
/** `refusal`: claude did not install the hook. */
export type ClaudeFacts = TurnFacts & OwnClaudeFacts

const unknownSession = /No conversation found with session ID/

/**
 * Returns how the run ended. The result decides, not the exit status: a harness may linger after it and be killed. Limits of turns and
 * of cost are `budget_exceeded`.
 */
export function claudeOutcome(facts: ClaudeFacts, exit: ProcessExit): HarnessOutcome {
  const gone = `The claude session ${facts.resumeSessionId} is not on this machine any more.`
  const limitsUsed = Object.values(facts.limitsUsed)
  const outcome = turnOutcome(facts, exit, {
    program: 'claude',
    unknownSession: isResumeRefused(facts) ? gone : null,
    refused: (message) => ({ exitReason: 'harness_start_failed', message }),
    ended: () => (facts.result === null ? withoutResult(facts, exit) : byResult(facts, facts.result)),
  })
  return limitsUsed.length === 0 ? outcome : { ...outcome, limitsUsed }
}

function isResumeRefused({ resumeSessionId, result, stderrTail, sessionId }: ClaudeFacts): boolean {
  if (resumeSessionId === null || sessionId !== null) return false
  return result === null
    ? unknownSession.test(stderrTail)
    : (result.errors ?? []).some((error) => unknownSession.test(error))
}

function byResult(facts: ClaudeFacts, result: ClaudeResultLine): Ending {
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
  if (reason?.startsWith('aborted') === true) return interruptedOutside('claude')
  if (result.is_error) return byError(facts, result)
  // A refusal looks like a success: no error, status 0.
  if (result.stop_reason === 'refusal') return failed('The model refused to answer.')
  if (reason !== null && reason !== 'completed') return failed(`claude stopped: ${reason}.`)
  return completed
}

/** claude's own names. `server_error` without a status is that of a connection. */
const kinds: Readonly<Record<string, FailureKind>> = {
  authentication_failed: 'unauthorised',
  max_output_tokens: 'output_limit',
  model_not_found: 'unknown_model',
}

function byError({ lastError, didWork, limitResetsAt }: ClaudeFacts, result: ClaudeResultLine): Ending {
  const httpStatus = result.api_error_status ?? lastError?.httpStatus ?? null
  const named = kinds[lastError?.class ?? ''] ?? null
  const withoutStatus = lastError?.class === 'rate_limit' ? 'rate_limit' : 'connection'
  const isUnanswered = httpStatus === null && ['rate_limit', 'server_error'].includes(lastError?.class ?? '')
  const isFull = result.terminal_reason === 'prompt_too_long'
  const kind = isFull ? 'context_full' : (named ?? (isUnanswered ? withoutStatus : null))
  const message = errorText(result) ?? (kind === 'unauthorised' ? '' : 'claude ended with an error.')
  return failureEnding(
    { message, httpStatus, kind },
    { signInHint: claudeSignInHint, signInWith: claudeSignInWith, didWork, resetsAt: limitResetsAt },
  )
}

/** Killed, or never started well. */
function withoutResult(facts: ClaudeFacts, exit: ProcessExit): Ending {
  return leftTurn('claude', exit, {
    facts,
    when: 'without a result',
    hasBegun: facts.sessionId !== null || exit.signal !== null,
  })
}

function errorText(result: ClaudeResultLine): string | null {
  const text = result.errors?.join('\n') ?? result.result ?? ''
  return text.trim() === '' ? null : cutText(text.trim(), 2_000).text
}
