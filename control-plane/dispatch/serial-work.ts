import type { Log } from '../log.ts'

/** Work that is done one piece after another. A piece that fails is logged; a sweep comes to it again. */
export class SerialWork {
  private readonly log: Log
  private readonly failed: string
  private readonly waiting = new Set<string>()
  private last: Promise<void> = Promise.resolve()
  private stopped = true

  /** `failed`: what the log says of a piece that failed. */
  constructor(log: Log, failed: string) {
    this.log = log
    this.failed = failed
  }

  get isStopped(): boolean {
    return this.stopped
  }

  start(): void {
    this.stopped = false
  }

  /** What has not begun is left out; resolves when nothing is being done any more. */
  async stop(): Promise<void> {
    this.stopped = true
    await this.last
  }

  /** Resolves when nothing that was asked for is still being done. */
  async idle(): Promise<void> {
    await this.last
  }

  /** With a key, a piece that waits already is not asked for twice. */
  add(piece: () => Promise<void>, key?: string): void {
    if (key !== undefined) {
      if (this.waiting.has(key)) return
      this.waiting.add(key)
    }
    this.last = this.last.then(async () => {
      if (key !== undefined) this.waiting.delete(key)
      if (this.stopped) return
      try {
        await piece()
      } catch (error) {
        this.log.error({ err: error }, this.failed)
      }
    })
  }
}
