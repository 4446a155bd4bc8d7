import { stateRequest } from './call-questions.ts'

/**
 * Finds out that claude has nothing left to do. claude says `running` before it begins with what it was sent, and `idle` when no turn
 * waits. A text may cross that word on its way, so a request is sent after it: claude reads in order, and has begun with
 * every text before by the time it answers. Versions that do not tell their state are never waited for.
 */
export class Rest {
  /** claude told its state. */
  isTold = false
  #isIdle = false
  #isAwaited = false
  #requests = 0

  /** Returns what is written after texts that were just sent. */
  sent(): string {
    return this.#request()
  }

  /** claude said what it does; returns what to write. */
  state(state: unknown): string {
    this.isTold = true
    this.#isIdle = state === 'idle'
    return this.#request()
  }

  /** A result came; returns what to write. From now on, claude is asked whenever it is idle. */
  await(): string {
    this.#isAwaited = true
    return this.#request()
  }

  /** Whether this answer shows that claude rests. */
  isBy(requestId: string): boolean {
    return this.#isIdle && this.#isAwaited && requestId === this.#id()
  }

  #request(): string {
    if (!this.#isIdle || !this.#isAwaited) return ''
    this.#requests++
    return stateRequest(this.#id())
  }
  #id(): string {
    return `rest-${this.#requests}`
  }
}
