import type { HarnessOutcome, ProcessExit } from '../adapter.ts'
import { failureEnding, failureKind, type Ending } from '../parts/failure.ts'
import { lastWords } from '../parts/left-early.ts'
import { completed, failed, leftTurn, turnOutcome, turnsSpent } from '../parts/outcome.ts'
import type { TurnFacts } from '../parts/turn.ts'
import { cursorSignInHint, cursorSignInWith } from './detect.ts'
import type { CursorResultLine } from './wire.ts'

/** The facts that Cursor's dialogue adds to those of every turn. */
export interface OwnCursorFacts {
  result: CursorResultLine | null
  /** Calls that began and did not end. */
  openCalls: number
}
export type CursorFacts = TurnFacts & OwnCursorFacts

const unknownChat = /(chat|session|conversation)[^\n]*(not found|does not exist|unknown)/i

/**
 * Returns how the run ended. Its result decides, not the exit status: the program may linger after it. Without a result, or with a
 * call that never ended, the run has failed; what went wrong stands on standard error.
 */
export function cursorOutcome(facts: CursorFacts, exit: ProcessExit): HarnessOutcome {
  const { resumeSessionId, sessionId, maxTurnsReached } = facts
  const said = lastWords(facts.stderrTail)
  const isGone = resumeSessionId !== null && sessionId === null && unknownChat.test(said)
  return turnOutcome(facts, exit, {
    program: 'Cursor',
    unknownSession: isGone ? `Cursor's chat ${resumeSessionId} is not on this machine any more.` : null,
    ended: () => (maxTurnsReached === null ? endingOf(facts, { exit, said }) : turnsSpent('Cursor', maxTurnsReached)),
  })
}

function endingOf(facts: CursorFacts, { exit, said }: { exit: ProcessExit; said: string }): Ending {
  const { result, didWork, sessionId } = facts
  if (result !== null && !result.is_error && result.subtype === 'success') {
    const isWhole = facts.openCalls === 0
    return isWhole ? completed : failed('Cursor said that it was done with a tool call that had not ended.')
  }
  const told = result?.result ?? said
  const failure = failureKind({ message: told })
  if (result === null && (failure === 'other' || exit.signal !== null))
    return leftTurn('Cursor', exit, { facts, when: 'without a result', hasBegun: sessionId !== null })
  const message = told === '' ? `Cursor ended with ${result?.subtype ?? 'no result'}.` : told
  return failureEnding(
    { message, kind: failure },
    { signInHint: cursorSignInHint, signInWith: cursorSignInWith, didWork },
  )
}
