import { usedLimit, type UsedLimit } from '../../../shared/device/used-limits.ts'
import type { FailureKind, HarnessOutcome, ProcessExit } from '../adapter.ts'
import { failureEnding, type Ending } from '../parts/failure.ts'
import { lastWords } from '../parts/left-early.ts'
import { completed, failed, interruptedOutside, leftTurn, turnOutcome, turnsSpent } from '../parts/outcome.ts'
import type { TurnFacts } from '../parts/turn.ts'
import { codexSignInHint, codexSignInWith } from './detect.ts'
import type { CodexTurn, LimitWindow, TurnError } from './wire.ts'

/** The facts that codex's dialogue adds to those of every turn. */
export interface OwnCodexFacts {
  /** The turn as it ended. */
  turn: CodexTurn | null
  /** The last failed request to the model that was not tried again. */
  lastError: TurnError | null
  /** The windows of the account's allowance, as codex told them last. */
  limits: { primary?: LimitWindow; secondary?: LimitWindow }
  /** codex waits for a network for too long, as it says, and was interrupted. */
  unreached: string | null
}
export type CodexFacts = TurnFacts & OwnCodexFacts

const unknownThread = /no rollout found|thread not found|no such thread/i

/** Returns how the run ended. The turn decides, not the exit status: codex exits 0 after a turn that failed. */
export function codexOutcome(facts: CodexFacts, exit: ProcessExit): HarnessOutcome {
  const { resumeSessionId, refusal, unasked } = facts
  const isGone = resumeSessionId !== null && refusal !== null && unknownThread.test(refusal)
  const isOfServer = unasked?.name.startsWith('mcp__') === true
  const limitsUsed = usedOf(facts.limits)
  const outcome = turnOutcome(facts, exit, {
    program: 'codex',
    unknownSession: isGone ? `The codex session ${resumeSessionId} is not on this machine any more.` : null,
    ...(isOfServer && { unaskedFix: ` A rule \`${unasked.name}\` in \`allow\` lets it.` }),
    ended: () => endingOf(facts, exit),
  })
  return limitsUsed.length === 0 ? outcome : { ...outcome, limitsUsed }
}

function endingOf(facts: CodexFacts, exit: ProcessExit): Ending {
  const { turn, maxTurnsReached, unreached, lastError } = facts
  if (turn === null || turn.status === 'inProgress') return withoutTurn(facts, exit)
  if (turn.status === 'completed') return completed
  if (maxTurnsReached !== null) return turnsSpent('codex', maxTurnsReached)
  if (unreached !== null) return { ...failed(`codex does not reach its provider: ${unreached}`), failure: 'connection' }
  if (turn.status === 'interrupted') return interruptedOutside('codex')
  return byError(facts, turn.error ?? lastError)
}

/** codex's own names; what the others are, status and words tell. */
const kinds: Readonly<Record<string, FailureKind>> = {
  usageLimitExceeded: 'rate_limit',
  rateLimitExceeded: 'rate_limit',
  unauthorized: 'unauthorised',
  contextWindowExceeded: 'context_full',
  sessionBudgetExceeded: 'context_full',
  modelNotFound: 'unknown_model',
  serverOverloaded: 'provider',
  internalServerError: 'provider',
}

function byError({ didWork, limits }: CodexFacts, error: TurnError | null): Ending {
  if (error === null) return failed('codex failed without saying why.')
  const { message, codexErrorInfo: info } = error
  return failureEnding(
    { message, httpStatus: httpStatusOf(info), kind: kinds[codexErrorClassOf(info)] ?? null },
    { signInHint: codexSignInHint, signInWith: codexSignInWith, didWork, resetsAt: spentUntil(limits) },
  )
}

/** When every window that is used up has begun anew. */
function spentUntil({ primary, secondary }: CodexFacts['limits']): number | null {
  const resets = [primary, secondary].flatMap((window) =>
    window && window.usedPercent >= 100 && window.resetsAt ? [window.resetsAt] : [],
  )
  return resets.length === 0 ? null : Math.max(...resets)
}

/** A window that does not say when it begins anew is not told: nobody would know for how long it is true. */
function usedOf({ primary, secondary }: CodexFacts['limits']): UsedLimit[] {
  return [primary, secondary].flatMap((window) => {
    if (!window?.resetsAt) return []
    const { windowDurationMins: windowMinutes, usedPercent, resetsAt } = window
    const told = { windowMinutes, models: null, usedPercent: Math.floor(usedPercent), resetsAt }
    return usedLimit.safeParse(told).data ?? []
  })
}

function withoutTurn(facts: CodexFacts, exit: ProcessExit): Ending {
  if (/not logged in|codex login/i.test(lastWords(facts.stderrTail)))
    return { exitReason: 'harness_start_failed', message: codexSignInHint, failure: 'unauthorised' }
  const hasBegun = facts.sessionId !== null || facts.didWork
  return leftTurn('codex', exit, { facts, when: 'in the middle of its turn', hasBegun })
}

/** The name of an error: `codexErrorInfo` is a name, or an object whose only key is one. */
export function codexErrorClassOf(info: unknown): string {
  if (typeof info === 'string' && info !== '') return info.slice(0, 200)
  const [name] = typeof info === 'object' && info !== null ? Object.keys(info) : []
  return name?.slice(0, 200) ?? 'other'
}

export function httpStatusOf(info: unknown): number | null {
  if (typeof info !== 'object' || info === null) return null
  const [detail] = Object.values(info) as unknown[]
  const status =
    typeof detail === 'object' && detail !== null && 'httpStatusCode' in detail ? detail.httpStatusCode : null
  return typeof status === 'number' && Number.isInteger(status) ? status : null
}
