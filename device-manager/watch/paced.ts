import type { World } from '../../shared/lib/world.ts'

export interface PacedOptions {
  world: Pick<World, 'after' | 'monotonic'>
  /** All that is asked for within this time is done by one act. */
  soonMs: number
  /** The least time between two acts. It doubles, up to `maxGapMs`, with each act in a row that found nothing new. */
  gapMs: number
  maxGapMs: number
  /** Resolves whether it found anything new; must not reject. */
  act(): Promise<boolean>
}

/**
 * Does something soon after it is asked for, one act at a time, and no more often than its gap allows: a file that changes
 * a thousand times a second costs a few acts. What is asked for while an act is under way is followed by another one.
 */
export class Paced {
  private readonly options: PacedOptions
  private gapMs: number
  private endedAt = Number.NEGATIVE_INFINITY
  private isActing = false
  private isAsked = false
  private isStopped = false
  private cancel: (() => void) | null = null

  constructor(options: PacedOptions) {
    this.options = options
    this.gapMs = options.gapMs
  }

  ask(): void {
    if (this.isStopped) return
    this.isAsked = true
    if (this.isActing || this.cancel !== null) return
    const { world, soonMs, gapMs } = this.options
    const quietMs = world.monotonic() - this.endedAt
    if (quietMs >= this.gapMs) this.gapMs = gapMs
    this.cancel = world.after(Math.max(soonMs, this.gapMs - quietMs), () => void this.begin())
  }

  stop(): void {
    this.isStopped = true
    this.cancel?.()
    this.cancel = null
  }

  private async begin(): Promise<void> {
    const { world, gapMs, maxGapMs } = this.options
    this.cancel = null
    this.isAsked = false
    this.isActing = true
    const isNew = await this.options.act()
    this.isActing = false
    this.endedAt = world.monotonic()
    this.gapMs = isNew ? gapMs : Math.min(this.gapMs * 2, maxGapMs)
    if (this.isAsked) this.ask()
  }
}
