import type { HarnessOutcome, ProcessExit } from '../adapter.ts'
import { failureEnding, failureKind, type Ending } from '../parts/failure.ts'
import { lastWords, leftEarly } from '../parts/left-early.ts'
import { signInHint, signInWith } from './detect.ts'
import type { ResultLine } from './wire.ts'

/** The facts that a dialogue knows when its process has left. */
export interface OutcomeFacts {
  resumeSessionId: string | null
  sessionId: string | null
  result: ResultLine | null
  /** Calls that began and did not end. */
  openCalls: number
  maxTurnsReached: number | null
  didWork: boolean
  stderrTail: string
}

const unknownChat = /(chat|session|conversation)[^\n]*(not found|does not exist|unknown)/i

/**
 * Returns how the run ended. Its result decides, not the exit status: the program may linger after it. Without a result, or with a
 * call that never ended, the run has failed; what went wrong stands on standard error.
 */
export function cursorOutcome(facts: OutcomeFacts, exit: ProcessExit): HarnessOutcome {
  const said = lastWords(facts.stderrTail)
  if (facts.resumeSessionId !== null && facts.sessionId === null && unknownChat.test(said)) {
    const message = `Cursor's chat ${facts.resumeSessionId} is not on this machine any more.`
    return { exitReason: exit.stoppedFor ?? 'harness_start_failed', message, sessionId: null, resumeRefused: true }
  }
  const kept = { sessionId: facts.sessionId, resumeRefused: false }
  if (exit.stoppedFor !== null) return { ...kept, exitReason: exit.stoppedFor, message: null }
  if (facts.maxTurnsReached !== null) {
    const message = `Cursor reached its maximum number of turns (${facts.maxTurnsReached}).`
    return { ...kept, exitReason: 'budget_exceeded', message }
  }
  return { ...kept, ...ended(facts, { exit, said }) }
}

function ended(facts: OutcomeFacts, { exit, said }: { exit: ProcessExit; said: string }): Ending {
  const { result, didWork, stderrTail } = facts
  if (result !== null && !result.is_error && result.subtype === 'success') {
    if (facts.openCalls === 0) return { exitReason: 'completed', message: null }
    return { exitReason: 'error', message: 'Cursor said that it was done with a tool call that had not ended.' }
  }
  const told = result?.result ?? said
  const failure = failureKind({ message: told })
  if (result === null && (failure === 'other' || exit.signal !== null)) {
    const message = leftEarly('Cursor', exit, { stderrTail, when: 'without a result' })
    return { exitReason: facts.sessionId === null ? 'harness_start_failed' : 'error', message }
  }
  const message = told === '' ? `Cursor ended with ${result?.subtype ?? 'no result'}.` : told
  return failureEnding({ message, kind: failure }, { signInHint, signInWith, didWork })
}
