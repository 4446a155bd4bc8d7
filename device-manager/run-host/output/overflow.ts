import type { PendingEvent } from './event-lines.ts'

const lastWordsBytes = 16 * 1024

export type GapReason = 'spool_full' | 'unsent_limit'

/**
 * Takes output that cannot be kept: a ring of the last events, and a count of what fell out of it. It returns a gap event with
 * the count and then the tail.
 */
export class Overflow {
  readonly reason: GapReason
  readonly #ringBytes: number
  #ring: PendingEvent[] = []
  #first = 0
  #held = 0
  #lost = 0

  constructor(reason: GapReason, ringBytes: number) {
    this.reason = reason
    this.#ringBytes = ringBytes
  }

  push(event: PendingEvent): void {
    this.#ring.push(event)
    this.#held += event.heldBytes
    while (this.#held > this.#ringBytes && this.#first < this.#ring.length) {
      const oldest = this.#ring[this.#first++]!
      this.#held -= oldest.heldBytes
      this.#lost += oldest.outputBytes
    }
    if (this.#first > 1_000) {
      this.#ring = this.#ring.slice(this.#first)
      this.#first = 0
    }
  }

  /** Returns the gap, then the tail. */
  take(at: number): PendingEvent[] {
    const events = [...gapOf(at, this.#lost, this.reason), ...this.#kept()]
    this.#clear()
    return events
  }

  /**
   * Returns the gap, and the last words before something that must be kept, which comes next: often they are the answer. There are few
   * of them, so that what must be kept does not open the way for all the rest.
   */
  takeBefore(at: number): PendingEvent[] {
    const tail = this.#kept()
    let from = tail.length
    let room = Math.min(lastWordsBytes, this.#ringBytes)
    while (from > 0 && tail[from - 1]!.heldBytes <= room) room -= tail[--from]!.heldBytes
    const lost = tail.slice(0, from).reduce((sum, event) => sum + event.outputBytes, this.#lost)
    this.#clear()
    return [...gapOf(at, lost, this.reason), ...tail.slice(from)]
  }

  #kept(): PendingEvent[] {
    return this.#ring.slice(this.#first)
  }

  #clear(): void {
    this.#ring = []
    this.#first = 0
    this.#held = 0
    this.#lost = 0
  }
}

export function gapOf(at: number, bytes: number, reason: GapReason): PendingEvent[] {
  return bytes === 0 ? [] : [{ at, body: { kind: 'gap', data: { bytes, reason } }, outputBytes: bytes, heldBytes: 128 }]
}
