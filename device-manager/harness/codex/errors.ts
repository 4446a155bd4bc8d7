import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { RedactText } from '../adapter.ts'
import { failedRequestEvent } from '../parts/error-event.ts'
import { cappedText } from '../parts/event-pieces.ts'
import { codexErrorClassOf, httpStatusOf, type CodexFacts } from './outcome.ts'
import type { Threads } from './threads.ts'
import { errorNote, rateLimits } from './wire.ts'

/** Without an end codex waits for a network that it believes is gone, for longer each time; the last of these is told after 15 s. */
const maxNetworkWaits = 3
const waitsForNetwork = /waiting for network/i

/** Reads what codex tells of failed requests to the model and of the account's limits, and notes it in the facts of the run. */
export class Errors {
  readonly #facts: CodexFacts
  readonly #threads: Threads
  readonly #redactText: RedactText
  #networkWaits = 0

  constructor(facts: CodexFacts, { threads, redactText }: { threads: Threads; redactText: RedactText }) {
    this.#facts = facts
    this.#threads = threads
    this.#redactText = redactText
  }

  sawProgress(): void {
    this.#networkWaits = 0
  }

  /** null: not what is understood. `isOwn`: of the run's own thread. `isUnreached`: the run must not wait for its provider any longer. */
  read(params: unknown): { events: RunEventBody[]; isOwn: boolean; isUnreached: boolean } | null {
    const parsed = errorNote.safeParse(params)
    if (!parsed.success) return null
    const { error, willRetry, threadId } = parsed.data
    if (threadId != null && !this.#threads.has(threadId)) return null
    const facts = this.#facts
    const httpStatus = httpStatusOf(error.codexErrorInfo)
    const { text: message } = cappedText(error.message, this.#redactText)
    const isOwn = (threadId ?? facts.sessionId) === facts.sessionId
    if (!willRetry && isOwn) facts.lastError = { ...error, message }
    const isUnreached = willRetry && waitsForNetwork.test(message) && ++this.#networkWaits === maxNetworkWaits
    // A provider that is not there ends the run, as it does with the other harnesses: another model or harness has its turn.
    if (isUnreached) facts.unreached = cappedText(error.additionalDetails ?? message, this.#redactText).text
    const kind = codexErrorClassOf(error.codexErrorInfo)
    return { events: [failedRequestEvent({ class: kind, message, httpStatus, willRetry })], isOwn, isUnreached }
  }

  limits(params: unknown): RunEventBody[] | null {
    const parsed = rateLimits.safeParse(params)
    if (!parsed.success) return null
    const { primary, secondary } = parsed.data.rateLimits
    this.#facts.limits = { ...this.#facts.limits, ...(primary && { primary }), ...(secondary && { secondary }) }
    return []
  }
}
