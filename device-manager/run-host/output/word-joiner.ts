import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { World } from '../../../shared/lib/world.ts'

/** Words that come within this time of those before are one event with them. */
const joinMs = 50
/** Words of one event, at most. */
const joinedChars = 16 * 1024

export interface WordJoinerOptions {
  world: Pick<World, 'after' | 'monotonic'>
  tell(bodies: readonly RunEventBody[]): void
}

/**
 * Joins what an agent says or thinks in pieces of a few letters, so that a long answer is some events and not thousands. The first piece
 * after a pause is told at once, and each later one within 50 ms. All else is told at once, behind the words that came before it.
 */
export class WordJoiner {
  readonly #options: WordJoinerOptions
  #held: Words | null = null
  #toldAt = Number.NEGATIVE_INFINITY
  #cancel: (() => void) | null = null

  constructor(options: WordJoinerOptions) {
    this.#options = options
  }

  take(bodies: readonly RunEventBody[]): void {
    const due: RunEventBody[] = []
    for (const body of bodies) {
      const next = wordsOf(body)
      if (this.#held !== null && next !== null && isSpeechOf(this.#held, next)) this.#held = joined(this.#held, next)
      else {
        if (this.#held !== null) due.push(this.#held)
        this.#held = next
        if (next === null) due.push(body)
      }
    }
    if (this.#held !== null && this.#restMs() <= 0) {
      due.push(this.#held)
      this.#held = null
      this.#toldAt = this.#options.world.monotonic()
    }
    this.#cancel?.()
    this.#cancel = this.#held === null ? null : this.#options.world.after(this.#restMs(), () => this.flush())
    if (due.length > 0) this.#options.tell(due)
  }

  /** Tells what is held. */
  flush(): void {
    this.#toldAt = Number.NEGATIVE_INFINITY
    this.take([])
  }

  #restMs(): number {
    return this.#toldAt + joinMs - this.#options.world.monotonic()
  }
}

type Words = Extract<RunEventBody, { kind: 'text' | 'thinking' }> & { data: { text: string } }

/** null: no words, or bytes that are no text. */
function wordsOf(body: RunEventBody): Words | null {
  return (body.kind === 'text' || body.kind === 'thinking') && body.data.text !== undefined ? (body as Words) : null
}

const isSpeechOf = (before: Words, next: Words): boolean =>
  before.kind === next.kind &&
  before.data.parentToolCallId === next.data.parentToolCallId &&
  before.data.text.length + next.data.text.length <= joinedChars

const joined = (before: Words, next: Words): Words => ({
  ...before,
  data: { ...before.data, text: before.data.text + next.data.text },
})
