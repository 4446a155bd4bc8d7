import type { RunEventBody } from '../../../shared/runs/events.ts'
import { forgetOldest } from '../parts/asked-calls.ts'
import { PartialWords } from '../parts/partial-words.ts'
import { wordsOf } from './items.ts'
import { messageDelta, type Item } from './wire.ts'

/** Messages that have begun and are not whole; the model makes them one after another. */
const maxBegun = 16

/**
 * What codex says and thinks. Its own messages come in pieces while they are made: those of an item that has begun and is not whole count,
 * and each item comes once more as a whole. Thinking, and what subagents say, is told once it is whole.
 */
export class CodexWords {
  readonly #words: PartialWords
  readonly #begun = new Set<string>()

  constructor(...how: ConstructorParameters<typeof PartialWords>) {
    this.#words = new PartialWords(...how)
  }

  /** An item of the run's own thread begins, maybe once more after a request that failed. */
  begin({ id, type }: Item): void {
    if (type !== 'agentMessage') return
    this.#begun.add(id)
    forgetOldest(this.#begun, maxBegun)
    this.#words.begin(id)
  }

  /** Takes a note of a thread about the next piece of a message. null: not one that is understood. */
  piece(params: unknown, ownThread: string | null): RunEventBody[] | null {
    const parsed = messageDelta.safeParse(params)
    if (!parsed.success) return null
    const { threadId, itemId: id, delta: text } = parsed.data
    return threadId === ownThread && this.#begun.has(id) ? this.#words.piece('text', { id, text }) : []
  }

  /** Takes an item that is whole. `isOwn`: of the run's own thread. */
  whole(item: Item, { isOwn, parent }: { isOwn: boolean; parent: { parentToolCallId?: string } }): RunEventBody[] {
    const said = wordsOf(item)
    if (isOwn) this.#begun.delete(item.id)
    if (said === null) return []
    const { kind, text } = said
    return this.#words.whole(kind, { id: isOwn ? item.id : null, text, parent })
  }

  release(): RunEventBody[] {
    return this.#words.release()
  }

  flush(): RunEventBody[] {
    return this.#words.flush()
  }
}
