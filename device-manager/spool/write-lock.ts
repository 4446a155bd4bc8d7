import type { Connection } from './connection.ts'
import { SpoolBusyError, toSpoolError } from './errors.ts'

/** So long a write waits for the lock when the one before it waited its whole time in vain. */
const shortBusyMs = 50

/**
 * Waits for the lock that all who write to the spool share. Whoever holds it may hang: after a wait in vain the next writes wait shortly
 * only, until one succeeds, since the caller has more to do.
 */
export class WriteLock {
  readonly #db: Connection
  readonly #usualMs: number
  #isVain = false

  constructor(db: Connection, busyTimeoutMs: number) {
    this.#db = db
    this.#usualMs = busyTimeoutMs
  }

  /** Does the work in one transaction. */
  write<Result>(work: () => Result): Result {
    try {
      const result = this.#db.transaction(work).immediate()
      if (this.#isVain) this.#waited({ isVain: false })
      return result
    } catch (error) {
      if (!this.#isVain && toSpoolError(error) instanceof SpoolBusyError) this.#waited({ isVain: true })
      throw error
    }
  }

  /** Another process is writing at this moment, or hangs in a write. */
  isHeld(): boolean {
    this.#waitFor(0)
    try {
      this.#db.transaction(() => {}).immediate()
      return false
    } catch (error) {
      if (!(toSpoolError(error) instanceof SpoolBusyError)) throw error
      return true
    } finally {
      this.#waited({ isVain: this.#isVain })
    }
  }

  #waited({ isVain }: { isVain: boolean }): void {
    this.#isVain = isVain
    this.#waitFor(isVain ? Math.min(shortBusyMs, this.#usualMs) : this.#usualMs)
  }

  #waitFor(ms: number): void {
    this.#db.pragma(`busy_timeout = ${ms}`)
  }
}
