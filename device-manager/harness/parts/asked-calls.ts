import { createHash } from 'node:crypto'
import { canonicalJson } from '../../../shared/lib/canonical-json.ts'

/** More calls than any model makes at once: what is asked beyond is refused, and what is remembered beyond is forgotten. */
export const maxCallsAtOnce = 1_000

/** A call that was made although nobody was asked, or not as it was allowed. */
export interface Unasked {
  /** Of its tool. */
  name: string
  /** It was asked about, and not allowed, or not as it was made. */
  wasAsked: boolean
}

/** Says why the run was stopped. `program`: its name at the beginning of a sentence. */
export function unaskedMessage(program: string, { name, wasAsked }: Unasked): string {
  const how = wasAsked ? ', but not as it was allowed' : ' without asking first'
  return `${program} ran ${name}${how}, so the run was stopped: the agent's lists would not have held.`
}

interface Question<Shown> {
  shown: Shown
  isAllowed: boolean
}
interface AskedCall<Shown> {
  /** It is known by the name of its tool, so that several calls may be meant. */
  isName: boolean
  questions: Set<Question<Shown>>
}

/**
 * The calls that were asked, and what became of each: by their id or, where a harness gives none, by their name. A program may ask
 * about a call several times, each time with another input; an answer is good for what its own question showed.
 *
 *     asked: held -- the answer is yes -> allowed -- the call ends -> forgotten
 *
 * Of too many that never end the oldest is forgotten. One that is made after that counts as never asked, so no call is made for
 * want of memory.
 */
export class AskedCalls<Shown> {
  readonly #isSame: (asked: Shown, made: Shown) => boolean
  readonly #calls = new Map<string, AskedCall<Shown>>()
  /** By the ids of what is asked, of which several may be about one question of the harness. */
  readonly #open = new Map<string, Question<Shown>[]>()

  constructor(isSame: (asked: Shown, made: Shown) => boolean) {
    this.#isSame = isSame
  }

  /** `shown`: what the question shows of the call, in each of the forms in which it may be made. */
  note(
    key: string,
    { askIds, shown, isName = false }: { askIds: readonly string[]; shown: readonly Shown[]; isName?: boolean },
  ): void {
    const questions = shown.map((one): Question<Shown> => ({ shown: one, isAllowed: false }))
    const call = this.#calls.get(key) ?? { isName, questions: new Set() }
    for (const question of questions) call.questions.add(question)
    forgetOldest(call.questions)
    this.#calls.set(key, call)
    forgetOldest(this.#calls)
    for (const askId of askIds) this.#open.set(askId, questions)
    forgetOldest(this.#open, 2 * maxCallsAtOnce)
  }

  /** `isAllowed`: null while other questions about the call are open. The answer to the last of them counts for all. */
  answered(askId: string, isAllowed: boolean | null): void {
    const questions = this.#open.get(askId) ?? []
    this.#open.delete(askId)
    if (isAllowed === true) for (const question of questions) question.isAllowed = true
  }

  /** Some question about the call was answered with yes, and it has not ended. */
  isAllowed(key: string): boolean {
    return [...(this.#calls.get(key)?.questions ?? [])].some(({ isAllowed }) => isAllowed)
  }

  /** Whether the call that has ended was asked and, if it was made, allowed as it was made; null: it was never asked. */
  take(key: string, { shown, isMade }: { shown: Shown; isMade: boolean }): boolean | null {
    const call = this.#calls.get(key)
    if (call === undefined) return null
    const questions = [...call.questions]
    const good = isMade
      ? questions.find((question) => question.isAllowed && this.#isSame(question.shown, shown))
      : questions.find(({ isAllowed }) => !isAllowed)
    const over = good ?? questions[0]
    if (over !== undefined) call.questions.delete(over)
    if (!call.isName || call.questions.size === 0) this.#calls.delete(key)
    return !isMade || good !== undefined
  }
}

/** What is shown of a call as a text of bounded length: its input may be megabytes. */
export const shownDigest = (shown: unknown): string =>
  createHash('sha256').update(canonicalJson(shown)).digest('base64')

export const isSameText = (asked: string, made: string): boolean => asked === made

/** Keeps the `most` that were added last. Returns whether it forgot any. */
export function forgetOldest<Key>(
  known: { size: number; keys(): Iterable<Key>; delete(key: Key): boolean },
  most = maxCallsAtOnce,
): boolean {
  if (known.size <= most) return false
  for (const key of known.keys()) {
    if (known.size <= most) break
    known.delete(key)
  }
  return true
}
