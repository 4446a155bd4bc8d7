import type { FailureKind, HarnessOutcome, ProcessExit } from '../adapter.ts'
import { unaskedMessage, type Unasked } from '../parts/asked-calls.ts'
import { cutOff, failureEnding, type Ending, type SignInWords } from '../parts/failure.ts'
import { leftEarly } from '../parts/left-early.ts'
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
  /** Its turn ended at a call that was refused, and so did the one in which it was told to go on. */
  endedByRefusal: string | null
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
    endedByRefusal: null,
    maxTurnsReached: null,
    stderrTail: '',
  }
}

/** The turn decides, not the exit status. A turn that never ended is a failure, whatever the status. */
export function acpOutcome(facts: OutcomeFacts, exit: ProcessExit, signIn: SignInWords): HarnessOutcome {
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
    const refused = `The program refused to start: ${refusal.message}`
    const ending = failed(refusal, { ...signIn, didWork: false })
    const message = ending.failure === 'unauthorised' ? ending.message : refused
    return { ...kept, ...ending, exitReason: 'harness_start_failed', message }
  }
  if (facts.failure !== null) return { ...kept, ...failed(facts.failure, { ...signIn, didWork: facts.didWork }) }
  return { ...kept, ...ended(facts, exit) }
}

/** The names that adapters of the protocol give errors; a program that gives none tells a status, or words. */
const kinds: Readonly<Record<string, FailureKind>> = {
  auth_required: 'unauthorised',
  authentication_failed: 'unauthorised',
  rate_limit: 'rate_limit',
  server_error: 'provider',
  overloaded: 'provider',
}

const failed = (error: RpcError, words: SignInWords & { didWork: boolean }): Ending =>
  failureEnding({ message: error.message, httpStatus: statusOf(error), kind: kinds[classOf(error)] ?? null }, words)

function ended(facts: OutcomeFacts, exit: ProcessExit): Ending {
  switch (facts.stopReason) {
    case 'end_turn':
      if (facts.endedByRefusal !== null) return { exitReason: 'error', message: facts.endedByRefusal }
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
      return cutOff()
    case 'refusal':
      return { exitReason: 'error', message: 'The model refused to go on.' }
    case null: {
      const message = leftEarly('The program', exit, {
        stderrTail: facts.stderrTail,
        when: 'in the middle of its turn',
      })
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

/** The name of an error, where its data tells. */
export function classOf(error: RpcError): string {
  if (error.code === authRequired) return 'auth_required'
  if (statusOf(error) === 429) return 'rate_limit'
  const kind = fieldsOf(error)['errorKind']
  return typeof kind === 'string' && kind !== '' ? kind.slice(0, 200) : 'other'
}

function statusOf(error: RpcError): number | null {
  const fields = fieldsOf(error)
  const told = [fields['status'], fields['httpStatus'], fields['statusCode']]
  return told.find((status): status is number => typeof status === 'number' && Number.isInteger(status)) ?? null
}

const fieldsOf = ({ data }: RpcError) =>
  (typeof data === 'object' && data !== null ? data : {}) as Record<string, unknown>
