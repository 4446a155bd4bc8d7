import type { FailureKind, HarnessOutcome, ProcessExit } from '../adapter.ts'
import { unaskedMessage, type Unasked } from '../parts/asked-calls.ts'
import { failureEnding, type Ending } from '../parts/failure.ts'
import { lastWords, leftEarly } from '../parts/left-early.ts'
import { signInHint, signInWith } from './detect.ts'
import type { LimitWindow, Turn, TurnError } from './wire.ts'

/** The facts that a dialogue knows when its process has left. */
export interface OutcomeFacts {
  resumeSessionId: string | null
  sessionId: string | null
  /** The turn as it ended. */
  turn: Turn | null
  /** Why codex took the thread or the turn not at all. */
  refusal: string | null
  /** The last failed request to the model that was not tried again. */
  lastError: TurnError | null
  /** The windows of the account's allowance, as codex told them last. */
  limits: { primary?: LimitWindow; secondary?: LimitWindow }
  /** The model said or did something. */
  didWork: boolean
  /** A command, patch or MCP call that was carried out and never asked, or not as it was allowed. */
  unasked: Unasked | null
  /** codex waits for a network for too long, as it says, and was interrupted. */
  unreached: string | null
  /** The limit of turns at which the run was interrupted. */
  maxTurnsReached: number | null
  stderrTail: string
}

/** The facts before codex has said anything. */
export function factsBefore(resumeSessionId: string | null): OutcomeFacts {
  return {
    resumeSessionId,
    sessionId: null,
    turn: null,
    refusal: null,
    lastError: null,
    limits: {},
    didWork: false,
    unasked: null,
    unreached: null,
    maxTurnsReached: null,
    stderrTail: '',
  }
}

const unknownThread = /no rollout found|thread not found|no such thread/i

/**
 * Returns how the run ended. The turn decides, not the exit status: codex exits 0 after a turn that failed. A turn that never
 * ended is a failure, whatever the status. Why each:
 *
 * - A failed request to the model: see `failureEnding`.
 * - A session that does not exist: `resumeRefused`; it is forgotten, and the next run begins a new one.
 */
export function codexOutcome(facts: OutcomeFacts, exit: ProcessExit): HarnessOutcome {
  const { resumeSessionId, refusal, turn } = facts
  if (resumeSessionId !== null && refusal !== null && unknownThread.test(refusal)) {
    const message = `The codex session ${resumeSessionId} is not on this machine any more.`
    return { exitReason: exit.stoppedFor ?? 'harness_start_failed', message, sessionId: null, resumeRefused: true }
  }
  const kept = { sessionId: facts.sessionId, resumeRefused: false }
  if (exit.stoppedFor !== null) return { ...kept, exitReason: exit.stoppedFor, message: null }
  if (facts.unasked !== null) {
    const { name } = facts.unasked
    const fix = name.startsWith('mcp__') ? ` A rule \`${name}\` in \`allow\` lets it.` : ''
    return { ...kept, exitReason: 'error', message: unaskedMessage('codex', facts.unasked) + fix }
  }
  if (refusal !== null)
    return { ...kept, exitReason: 'harness_start_failed', message: `codex refused to start: ${refusal}` }
  if (turn === null || turn.status === 'inProgress') return { ...kept, ...withoutTurn(facts, exit) }
  if (turn.status === 'completed') return { ...kept, exitReason: 'completed', message: null }
  if (facts.maxTurnsReached !== null) {
    const message = `codex reached its maximum number of turns (${facts.maxTurnsReached}).`
    return { ...kept, exitReason: 'budget_exceeded', message }
  }
  if (facts.unreached !== null) {
    const message = `codex does not reach its provider: ${facts.unreached}`
    return { ...kept, exitReason: 'error', message, failure: 'connection' }
  }
  if (turn.status === 'interrupted')
    return { ...kept, exitReason: 'error', message: 'codex was interrupted from outside.' }
  return { ...kept, ...failed(facts, turn.error ?? facts.lastError) }
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

function failed({ didWork, limits }: OutcomeFacts, error: TurnError | null): Ending {
  if (error === null) return { exitReason: 'error', message: 'codex failed without saying why.' }
  const { message, codexErrorInfo: info } = error
  return failureEnding(
    { message, httpStatus: httpStatusOf(info), kind: kinds[classOf(info)] ?? null },
    { signInHint, signInWith, didWork, resetsAt: spentUntil(limits) },
  )
}

/** When every window that is used up has begun anew. */
function spentUntil({ primary, secondary }: OutcomeFacts['limits']): number | null {
  const resets = [primary, secondary].flatMap((window) =>
    window && window.usedPercent >= 100 && window.resetsAt ? [window.resetsAt] : [],
  )
  return resets.length === 0 ? null : Math.max(...resets)
}

function withoutTurn({ didWork, stderrTail, sessionId }: OutcomeFacts, exit: ProcessExit): Ending {
  if (/not logged in|codex login/i.test(lastWords(stderrTail)))
    return { exitReason: 'harness_start_failed', message: signInHint, failure: 'unauthorised' }
  const message = leftEarly('codex', exit, { stderrTail, when: 'in the middle of its turn' })
  return { exitReason: sessionId === null && !didWork ? 'harness_start_failed' : 'error', message }
}

/** The name of an error: `codexErrorInfo` is a name, or an object whose only key is one. */
export function classOf(info: unknown): string {
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
