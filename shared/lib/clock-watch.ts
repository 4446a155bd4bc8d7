import type { World } from './world.ts'

/**
 * Notices that the wall clock jumped: the machine slept, or this process was stopped or blocked. The wall clock tells it, since
 * monotonic clock and timers stand still while some systems sleep.
 */
export class ClockWatch {
  private readonly options: { world: World; jumpMs: number; onJump: (ms: number) => void }
  private lookedAt: number
  private cancel: (() => void) | null = null

  /** `jumpMs`: looks that lie further apart are told to `onJump`; also where the clock was set back so far. */
  constructor(options: { world: World; jumpMs: number; onJump: (ms: number) => void }) {
    this.options = options
    this.lookedAt = options.world.now()
  }

  /** Looks every `everyMs`, which is less than `jumpMs`. */
  start(everyMs: number): void {
    this.lookedAt = this.options.world.now()
    const tick = () => {
      this.cancel = this.options.world.after(everyMs, () => {
        this.check()
        tick()
      })
    }
    tick()
  }

  stop(): void {
    this.cancel?.()
    this.cancel = null
  }

  /** Looks now. Who judges something by the time that passed looks first: the timer may come later. */
  check(): void {
    const now = this.options.world.now()
    const ms = now - this.lookedAt
    this.lookedAt = now
    if (Math.abs(ms) > this.options.jumpMs) this.options.onJump(ms)
  }
}
