import type { HarnessOutcome, ProcessExit } from '../adapter.ts'
import { unaskedMessage, type Unasked } from '../parts/asked-calls.ts'
import type { RpcError } from './wire.ts'

/** The facts that a dialogue knows when its process has left. */
export interface OutcomeFacts {
  resumeSessionId: string | null
  sessionId: string | null
  /** It can go on with a session in a later process. */
  keepsSessions: boolean
  stopReason: string | null
  /** Why it took the session not at all. */
  refusal: RpcError | null
  isResumeRefused: boolean
  /** Why the prompt failed. */
  failure: RpcError | null
  didWork: boolean
  unasked: Unasked | null
  /** The limit of turns at which the run was interrupted. */
  maxTurnsReached: number | null
  stderrTail: string
}

/** The facts before the program has said anything. */
export function factsBefore(resumeSessionId: string | null): OutcomeFacts {
  return {
    resumeSessionId,
    sessionId: null,
    keepsSessions: false,
    stopReason: null,
    refusal: null,
    isResumeRefused: false,
    failure: null,
    didWork: false,
    unasked: null,
    maxTurnsReached: null,
    stderrTail: '',
  }
}

/** The turn decides, not the exit status. A turn that never ended is a failure, whatever the status. */
export function acpOutcome(facts: OutcomeFacts, exit: ProcessExit, signInHint: string): HarnessOutcome {
  const { resumeSessionId, refusal } = facts
  if (facts.isResumeRefused) {
    const message = `The program does not go on with its session ${resumeSessionId}: ${refusal?.message ?? ''}`
    return { exitReason: exit.stoppedFor ?? 'harness_start_failed', message, sessionId: null, resumeRefused: true }
  }
  const kept = { sessionId: facts.keepsSessions ? facts.sessionId : null, resumeRefused: false }
  if (exit.stoppedFor !== null) return { ...kept, exitReason: exit.stoppedFor, message: null }
  if (facts.unasked !== null) {
    return { ...kept, exitReason: 'error', message: unaskedMessage('The program', facts.unasked) }
  }
  if (refusal !== null) {
    const hint = refusal.code === authRequired ? ` ${signInHint}` : ''
    const message = `The program refused to start: ${refusal.message}${hint}`
    return { ...kept, exitReason: 'harness_start_failed', message }
  }
  if (facts.failure !== null) return { ...kept, ...failed(facts.failure, { didWork: facts.didWork, signInHint }) }
  return { ...kept, ...ended(facts, exit) }
}

type Ending = Pick<HarnessOutcome, 'exitReason' | 'message'>

function failed(error: RpcError, { didWork, signInHint }: { didWork: boolean; signInHint: string }): Ending {
  const { message } = error
  if (classOf(error) === 'rate_limit') return { exitReason: 'rate_limited', message }
  if (error.code !== authRequired) return { exitReason: 'error', message }
  return { exitReason: didWork ? 'error' : 'harness_start_failed', message: `${message} ${signInHint}` }
}

function ended(facts: OutcomeFacts, { exitCode, signal }: ProcessExit): Ending {
  switch (facts.stopReason) {
    case 'end_turn':
      return { exitReason: 'completed', message: null }
    case 'max_turn_requests':
      return { exitReason: 'budget_exceeded', message: 'The program reached its own maximum number of turns.' }
    case 'cancelled': {
      const { maxTurnsReached: limit } = facts
      if (limit !== null)
        return { exitReason: 'budget_exceeded', message: `The program reached its maximum number of turns (${limit}).` }
      return { exitReason: 'error', message: 'The turn was cancelled from outside.' }
    }
    case 'max_tokens':
      return { exitReason: 'error', message: 'The model reached its maximum number of tokens.' }
    case 'refusal':
      return { exitReason: 'error', message: 'The model refused to go on.' }
    case null: {
      const how = signal === null ? `exit status ${exitCode ?? 'unknown'}` : `signal ${signal}`
      const said = facts.stderrTail.trim().split('\n').at(-1)?.slice(0, 500) ?? ''
      const message = `The program left in the middle of its turn (${how})${said === '' ? '.' : `: ${said}`}`
      return { exitReason: facts.sessionId === null ? 'harness_start_failed' : 'error', message }
    }
    default:
      return { exitReason: 'error', message: `The turn ended for an unknown reason: ${facts.stopReason}.` }
  }
}

export const authRequired = -32_000
const maxDetailChars = 1_000

/** Returns what an error says; programs often say only in its data what happened. */
export function textOf({ message, data }: RpcError): string {
  const { details, message: inner } = (typeof data === 'object' && data !== null ? data : {}) as Record<string, unknown>
  const detail = [data, details, inner].find((each): each is string => typeof each === 'string' && each !== '')
  if (detail === undefined || message.includes(detail)) return message
  return message === '' ? detail.slice(0, maxDetailChars) : `${message}: ${detail.slice(0, maxDetailChars)}`
}

/** The kind of an error, where its data tells. */
export function classOf({ code, data }: RpcError): string {
  if (code === authRequired) return 'auth_required'
  const fields = typeof data === 'object' && data !== null ? (data as Record<string, unknown>) : {}
  if ([fields['status'], fields['httpStatus'], fields['statusCode']].includes(429)) return 'rate_limit'
  const kind = fields['errorKind']
  return typeof kind === 'string' && kind !== '' ? kind.slice(0, 200) : 'other'
}
