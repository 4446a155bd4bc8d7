import type { HarnessOutcome, ProcessExit } from '../adapter.ts'
import { unaskedMessage, type Unasked } from '../parts/asked-calls.ts'
import { signInHint } from './detect.ts'
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
    maxTurnsReached: null,
    stderrTail: '',
  }
}

const unknownThread = /no rollout found|thread not found|no such thread/i

/**
 * Returns how the run ended. The turn decides, not the exit status: codex exits 0 after a turn that failed. A turn that never
 * ended is a failure, whatever the status. Why each:
 *
 * - 429 and a spent allowance are `rate_limited`; what is wrong is written in codex's own message.
 * - No credentials, or refused ones before anything was done: `harness_start_failed`, since a retry cannot help.
 * - A context that is full: `error`, and the session is not gone on with, since it could only fail the same way.
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
  if (turn.status === 'interrupted')
    return { ...kept, exitReason: 'error', message: 'codex was interrupted from outside.' }
  return { ...kept, ...failed(facts, turn.error ?? facts.lastError) }
}

type Ending = Pick<HarnessOutcome, 'exitReason' | 'message' | 'limitResetsAt' | 'providerFailed'> & { sessionId?: null }

function failed({ didWork, limits }: OutcomeFacts, error: TurnError | null): Ending {
  if (error === null) return { exitReason: 'error', message: 'codex failed without saying why.' }
  const info = error.codexErrorInfo
  const [kind, status] = [classOf(info), httpStatusOf(info)]
  const { message } = error
  if (status === 429 || kind === 'usageLimitExceeded' || kind === 'rateLimitExceeded') {
    return { exitReason: 'rate_limited', message, ...spentUntil(limits) }
  }
  if (kind === 'unauthorized' || status === 401) {
    const told = `${message} Sign in again: run \`codex login\`.`
    return { exitReason: didWork ? 'error' : 'harness_start_failed', message: told }
  }
  if (kind === 'contextWindowExceeded' || kind === 'sessionBudgetExceeded') {
    return { exitReason: 'error', message, sessionId: null }
  }
  if (kind === 'modelNotFound')
    return { exitReason: 'error', message: `${message} Choose another model for the agent.` }
  const providerFailed = kind === 'serverOverloaded' || kind === 'internalServerError' || (status ?? 0) >= 500
  return { exitReason: 'error', message, ...(providerFailed && { providerFailed }) }
}

/** When every window that is used up has begun anew. */
function spentUntil({ primary, secondary }: OutcomeFacts['limits']): { limitResetsAt?: number } {
  const resets = [primary, secondary].flatMap((window) =>
    window && window.usedPercent >= 100 && window.resetsAt ? [window.resetsAt] : [],
  )
  return resets.length === 0 ? {} : { limitResetsAt: Math.max(...resets) }
}

function withoutTurn({ didWork, stderrTail, sessionId }: OutcomeFacts, { exitCode, signal }: ProcessExit): Ending {
  const how = signal === null ? `exit status ${exitCode ?? 'unknown'}` : `signal ${signal}`
  const said = stderrTail.trim().split('\n').at(-1)?.slice(0, 500) ?? ''
  if (/not logged in|codex login/i.test(said)) return { exitReason: 'harness_start_failed', message: signInHint }
  const message = `codex left in the middle of its turn (${how})${said === '' ? '.' : `: ${said}`}`
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
