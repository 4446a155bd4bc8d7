import type { CallDecision } from '../adapter.ts'
import { maxCallsAtOnce } from './asked-calls.ts'

interface Open<Question> {
  question: Question
  /** Of the questions of the run host about this one, so many have no answer yet. */
  left: number
  decision: CallDecision | null
}

/** What all questions of the run host about one of the harness led to. */
export interface AnsweredQuestion<Question> {
  question: Question
  decision: CallDecision
}

/**
 * The questions of a harness that wait for their answers. The harness gives each an `id`. The run host is asked under ids of our own,
 * since a harness may use one of its own twice; under several ids where one question is about several calls.
 */
export class OpenQuestions<Question extends { id: unknown }> {
  readonly #most: number
  readonly #open = new Map<string, Open<Question>>()
  #count = 0

  constructor(most = maxCallsAtOnce) {
    this.#most = most
  }

  /** Returns the ids under which the run host is asked; null where too many questions are open. `forget` comes before it. */
  raise(question: Question, count = 1): string[] | null {
    if (this.#open.size >= this.#most) return null
    const open: Open<Question> = { question, left: count, decision: null }
    return Array.from({ length: count }, () => {
      const askId = this.nextAskId()
      this.#open.set(askId, open)
      return askId
    })
  }

  nextAskId(): string {
    return `ask-${++this.#count}`
  }

  /**
   * Forgets the question that is open under this id, and says whether there was one. An adapter asks this of each request that has an
   * id before it looks at what the request is about, and refuses it where there was one: the harness would take one answer for both,
   * so neither call may run. Whatever is answered to the forgotten one, the harness is told nothing more.
   */
  forget(id: Question['id']): boolean {
    const askIds = [...this.#open].filter(([, { question }]) => question.id === id).map(([askId]) => askId)
    for (const askId of askIds) this.#open.delete(askId)
    return askIds.length > 0
  }

  /** null: the question is not known, was answered already, or others about the same one are still open. */
  answer(askId: string, decision: CallDecision): AnsweredQuestion<Question> | null {
    const open = this.#open.get(askId)
    if (open === undefined) return null
    this.#open.delete(askId)
    open.left--
    open.decision = both(open.decision, decision)
    return open.left > 0 ? null : { question: open.question, decision: open.decision }
  }
}

/** All must be allowed. The first refusal gives the reason, and any of them may stop the run. */
function both(before: CallDecision | null, now: CallDecision): CallDecision {
  if (before === null || before.behavior === 'allow') return now
  return now.behavior === 'deny' && now.stop === true ? { ...before, stop: true } : before
}
