import type { RunKey, Spool } from '../spool/spool.ts'

/** The spool of a host, opened while nobody waits. */
export class SpoolAhead {
  readonly #open: () => Spool
  #spool: Spool | null = null

  constructor(open: () => Spool) {
    this.#open = open
  }

  /** Opens it before there is a run. Throws what is wrong with it, which counts when a run is assigned. */
  open(): void {
    this.#spool ??= this.#open()
  }

  /** Returns a spool that can be read for the run now. */
  take(key: RunKey): Spool {
    const ahead = this.#spool
    this.#spool = null
    try {
      // Reads from it: another file may stand at its path by now.
      ahead?.stats(key)
      if (ahead) return ahead
    } catch {
      ahead?.close()
    }
    return this.#open()
  }

  close(): void {
    this.#spool?.close()
    this.#spool = null
  }
}
