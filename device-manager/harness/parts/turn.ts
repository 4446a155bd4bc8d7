import { hasCallChecks } from '../../../shared/runs/call-checks.ts'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { DialogueOptions, DialogueOutput, RedactText } from '../adapter.ts'
import type { Unasked } from './asked-calls.ts'
import { errorEvent } from './error-event.ts'
import { asItIs, cappedText } from './event-pieces.ts'

/** The facts about a run that its outcome is made of (outcome.ts). A harness adds those of its own. */
export interface TurnFacts {
  readonly resumeSessionId: string | null
  sessionId: string | null
  /** The model said or did something. */
  didWork: boolean
  /** Why the harness took the session, or the prompt, not at all. */
  refusal: string | null
  /** A call that was made although the agent's lists had no say in it. */
  unasked: Unasked | null
  /** The limit of turns at which the run was stopped. */
  maxTurnsReached: number | null
  stderrTail: string
}

export interface TurnOptions<Own extends object> {
  /** Tells a person that their text came after the end. */
  tooLate: RunEventBody
  /** The facts of this harness alone, as they are before it has said anything. */
  own: Own
  /** `starting`: something must be in place before a session can be opened. */
  beginsIn?: 'starting' | 'opening'
  /** More texts of a person before the first turn are forgotten. */
  maxEarly?: number
}

/**
 * The frame of a run of an agent program, which is the same for every harness: its phase, its facts, the texts that a person adds, and
 * the model's turns.
 *
 *     starting   only where a harness needs it
 *     opening    the session is made, or the one that is gone on with is looked for
 *     working    the prompt was sent: words and calls come, questions are answered
 *     finished   the result came or the harness refused: standard input is closed, by which the program exits
 */
export class Turn<Own extends object> {
  readonly spec: RunSpec
  readonly facts: TurnFacts & Own
  readonly redactText: RedactText
  phase: 'starting' | 'opening' | 'working' | 'finished'
  readonly #tooLate: RunEventBody
  readonly #maxEarly: number
  #early: string[] = []
  #modelTurns = 0
  #isModelsTurn = false

  constructor(
    spec: RunSpec,
    { redactText = asItIs }: DialogueOptions,
    { tooLate, own, beginsIn = 'opening', maxEarly = Infinity }: TurnOptions<Own>,
  ) {
    this.spec = spec
    this.redactText = redactText
    this.#tooLate = tooLate
    this.#maxEarly = maxEarly
    this.phase = beginsIn
    this.facts = {
      resumeSessionId: spec.resumeSessionId,
      sessionId: null,
      didWork: false,
      refusal: null,
      unasked: null,
      maxTurnsReached: null,
      stderrTail: '',
      ...own,
    }
  }

  get isFinished(): boolean {
    return this.phase === 'finished'
  }

  /** Takes a person's text. `send`: null while the harness takes none yet, so that the text waits for `takeEarly`. */
  input(text: string, send: ((text: string) => string) | null): DialogueOutput {
    if (this.isFinished) return { events: [this.#tooLate] }
    if (send !== null) return { events: [], write: send(text) }
    if (this.#early.length < this.#maxEarly) this.#early.push(text)
    return { events: [] }
  }

  /** Returns the texts that came too early to be sent. */
  takeEarly(): string[] {
    return this.#early.splice(0)
  }

  /** Notes the session of the run, and returns the event that tells of it. */
  session(
    sessionId: string,
    { model, isResumed }: { model?: string | null | undefined; isResumed?: boolean } = {},
  ): RunEventBody {
    const { resumeSessionId } = this.facts
    this.facts.sessionId = sessionId
    const resumed = resumeSessionId === null ? {} : { resumed: isResumed ?? sessionId === resumeSessionId }
    return { kind: 'session', data: { sessionId, ...(model != null && { model }), ...resumed } }
  }

  /**
   * The model says or calls something. What it does after tools have ended is its next turn, for a harness that counts none. Returns
   * whether that is the first turn past the limit of the agent, so that the harness must be stopped.
   */
  modelActs(): boolean {
    if (this.#isModelsTurn) return false
    this.#isModelsTurn = true
    return this.isPastLimit(this.#modelTurns++)
  }

  /** A tool has ended, or the model is asked anew: what the model does next is another turn. */
  modelIsAsked(): void {
    this.#isModelsTurn = false
  }

  /** Whether a turn that begins after so many others is past the limit of the agent. It is so once. */
  isPastLimit(turnsBefore: number): boolean {
    const { maxTurns } = this.spec
    if (maxTurns === null || turnsBefore < maxTurns || this.facts.maxTurnsReached !== null) return false
    this.facts.maxTurnsReached = maxTurns
    return true
  }

  /** A call was made that was not asked, or not as it was allowed. Returns whether the harness must be stopped for it. */
  sawUnasked(unasked: Unasked): boolean {
    if (!hasCallChecks(this.spec) || this.facts.unasked !== null) return false
    this.facts.unasked = unasked
    return true
  }

  /** A text of the harness, without secrets where it was cut, as an event or the outcome may hold it. */
  capped(text: string): string {
    return cappedText(text, this.redactText).text
  }

  result(said: string, isError: boolean): RunEventBody {
    const { text, ...cut } = cappedText(said, this.redactText)
    return { kind: 'result', data: { text, isError, ...cut } }
  }

  finish(events: readonly RunEventBody[] = []): DialogueOutput {
    this.phase = 'finished'
    return { events, finished: true, closeInput: true }
  }

  /** The harness took the session or the prompt not at all. `message`: capped. */
  refuse(message: string, kind = 'refused'): DialogueOutput {
    this.facts.refusal ??= message
    return this.finish([errorEvent(kind, this.facts.refusal)])
  }
}
