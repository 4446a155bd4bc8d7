import type { FailureKind, HarnessOutcome, ProcessExit } from '../adapter.ts'
import { cutOff, failureEnding, type Ending, type SignInWords } from '../parts/failure.ts'
import { completed, failed, leftTurn, refusedToStart, turnOutcome, turnsSpent } from '../parts/outcome.ts'
import type { TurnFacts } from '../parts/turn.ts'
import type { RpcError } from './wire.ts'

/** The facts that a dialogue by ACP adds to those of every turn. */
export interface OwnAcpFacts {
  /** It can go on with a session in a later process. */
  keepsSessions: boolean
  stopReason: string | null
  /** The error with which it refused. */
  refusedFor: RpcError | null
  isResumeRefused: boolean
  /** Why the prompt failed. */
  failure: RpcError | null
  /** Its turn ended at a call that was refused, and so did the one in which it was told to go on. */
  endedByRefusal: string | null
}
export type AcpFacts = TurnFacts & OwnAcpFacts

export const ownFacts = (): OwnAcpFacts => ({
  keepsSessions: false,
  stopReason: null,
  refusedFor: null,
  isResumeRefused: false,
  failure: null,
  endedByRefusal: null,
})

const program = 'The program'

/** The turn decides, not the exit status. A turn that never ended is a failure, whatever the status. */
export function acpOutcome(facts: AcpFacts, exit: ProcessExit, signIn: SignInWords): HarnessOutcome {
  const { resumeSessionId, refusal, keepsSessions, didWork } = facts
  const notResumed = `The program does not go on with its session ${resumeSessionId}: ${refusal ?? ''}`
  const kept = keepsSessions ? facts : { ...facts, sessionId: null }
  return turnOutcome(kept, exit, {
    program,
    unknownSession: facts.isResumeRefused ? notResumed : null,
    refused: (message) => refused(message, facts, signIn),
    ended: () => (facts.failure === null ? endingOf(facts, exit) : byError(facts.failure, { ...signIn, didWork })),
  })
}

function refused(refusal: string, { refusedFor }: AcpFacts, signIn: SignInWords): Ending {
  const asSaid = refusedToStart(program)(refusal)
  if (refusedFor === null) return asSaid
  const ending = byError(refusedFor, { ...signIn, didWork: false })
  return { ...ending, ...asSaid, ...(ending.failure === 'unauthorised' && { message: ending.message }) }
}

/** The names that adapters of the protocol give errors; a program that gives none tells a status, or words. */
const kinds: Readonly<Record<string, FailureKind>> = {
  auth_required: 'unauthorised',
  authentication_failed: 'unauthorised',
  rate_limit: 'rate_limit',
  server_error: 'provider',
  overloaded: 'provider',
}

const byError = (error: RpcError, words: SignInWords & { didWork: boolean }): Ending =>
  failureEnding(
    { message: error.message, httpStatus: statusOf(error), kind: kinds[acpErrorClassOf(error)] ?? null },
    words,
  )

function endingOf(facts: AcpFacts, exit: ProcessExit): Ending {
  const { stopReason, endedByRefusal, maxTurnsReached, sessionId } = facts
  switch (stopReason) {
    case 'end_turn':
      return endedByRefusal === null ? completed : failed(endedByRefusal)
    case 'max_turn_requests':
      return { exitReason: 'budget_exceeded', message: 'The program reached its own maximum number of turns.' }
    case 'cancelled':
      if (maxTurnsReached !== null) return turnsSpent(program, maxTurnsReached)
      return failed('The turn was cancelled from outside.')
    case 'max_tokens':
      return cutOff()
    case 'refusal':
      return failed('The model refused to go on.')
    case null:
      return leftTurn(program, exit, { facts, when: 'in the middle of its turn', hasBegun: sessionId !== null })
    default:
      return failed(`The turn ended for an unknown reason: ${stopReason}.`)
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
export function acpErrorClassOf(error: RpcError): string {
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
