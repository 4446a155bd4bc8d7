import type { HarnessOutcome, ProcessExit } from '../adapter.ts'
import { unaskedMessage } from './asked-calls.ts'
import type { Ending } from './failure.ts'
import { leftEarly } from './left-early.ts'
import type { TurnFacts } from './turn.ts'

export interface OutcomeParts {
  /** Its name at the beginning of a sentence. */
  program: string
  /** Says that the session which was to be resumed is not there; null: it is, or none was to be resumed. */
  unknownSession: string | null
  /** What may be done about a call that was made without being asked. */
  unaskedFix?: string
  /** How a run ends whose session or prompt the harness refused; left out: as `refusedToStart` says. */
  refused?: (refusal: string) => Ending
  /** How the turn ended, where nothing of this came before. */
  ended: () => Ending
}

/**
 * Returns how a run ended. The first that is so counts, the same for every harness:
 *
 *  1. The session to be resumed does not exist: `resumeRefused`. It is forgotten, and the next run begins a new one.
 *  2. The run host stopped the run: for its reason.
 *  3. A call was made in which the lists had no say: `error`.
 *  4. The harness took the session or the prompt not at all: `harness_start_failed`.
 *  5. What the harness said of its turn, and last how its process left.
 */
export function turnOutcome(
  facts: TurnFacts,
  exit: ProcessExit,
  { program, unknownSession, unaskedFix = '', refused = refusedToStart(program), ended }: OutcomeParts,
): HarnessOutcome {
  if (unknownSession !== null) {
    const exitReason = exit.stoppedFor ?? 'harness_start_failed'
    return { exitReason, message: unknownSession, sessionId: null, resumeRefused: true }
  }
  const kept = { sessionId: facts.sessionId, resumeRefused: false }
  if (exit.stoppedFor !== null) return { ...kept, exitReason: exit.stoppedFor, message: null }
  if (facts.unasked !== null) return { ...kept, ...failed(unaskedMessage(program, facts.unasked) + unaskedFix) }
  return { ...kept, ...(facts.refusal === null ? ended() : refused(facts.refusal)) }
}

export const completed: Ending = { exitReason: 'completed', message: null }

export const failed = (message: string): Ending => ({ exitReason: 'error', message })

export const refusedToStart =
  (program: string) =>
  (refusal: string): Ending => ({
    exitReason: 'harness_start_failed',
    message: `${program} refused to start: ${refusal}`,
  })

/** The agent's own limit ended the run; it did not fail. */
export const turnsSpent = (program: string, limit: number): Ending => ({
  exitReason: 'budget_exceeded',
  message: `${program} reached its maximum number of turns (${limit}).`,
})

export const interruptedOutside = (program: string): Ending => failed(`${program} was interrupted from outside.`)

/** The process left before the turn was over, whatever its status: no result is no proof of completion. */
export function leftTurn(
  program: string,
  exit: ProcessExit,
  { facts, when, hasBegun }: { facts: Pick<TurnFacts, 'stderrTail'>; when: string; hasBegun: boolean },
): Ending {
  const message = leftEarly(program, exit, { stderrTail: facts.stderrTail, when })
  return { exitReason: hasBegun ? 'error' : 'harness_start_failed', message }
}
