/** Statements may hold the event loop for so long in one go. */
const mostMs = 20

const key = Symbol('loop turns')

/**
 * SQLite answers within the call, so what asks one statement after another (a batch, a sweep, wakes that wait) gives the event
 * loop no turn by itself: nobody else would be served until it is done. Asked before each statement.
 */
export class LoopTurns {
  /** When the first statement of this turn of the loop was asked. */
  private startedAt: number | null = null

  /** The turns of a connection; all statements on it count together. */
  static of(connection: object): LoopTurns {
    const known: { [key]?: LoopTurns } = connection
    return (known[key] ??= new LoopTurns())
  }

  /** null: go on. Otherwise to be awaited first: what waits meanwhile is served before it resolves. */
  next(): Promise<void> | null {
    if (this.startedAt === null) {
      this.startedAt = performance.now()
      setImmediate(() => (this.startedAt = null))
      return null
    }
    if (performance.now() - this.startedAt < mostMs) return null
    return new Promise((resolve) => setImmediate(resolve))
  }
}
