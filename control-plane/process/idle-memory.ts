import { collectGarbage } from '../../shared/lib/v8.ts'
import type { World } from '../../shared/lib/world.ts'

/**
 * Returns memory to the system when a busy server becomes idle. V8 collects only while there is work, so the garbage
 * of a burst would stay for as long as nobody calls.
 */
export interface IdleMemoryOptions {
  world: World
  /** Bytes that the process holds; null: the system does not tell. */
  resident?: () => number | null
  collect?: () => void
}

const checkMs = 10_000
/** Smaller growth is not worth a collection. */
const growth = 1.25

export class IdleMemory {
  private readonly world: World
  private readonly resident: () => number | null
  private readonly collect: () => void
  private wasActive = false
  /** Something happened since the last collection. */
  private isDue = false
  private least = Infinity
  private stopTimer: () => void = () => undefined

  constructor({
    world,
    resident = residentBytes,
    collect = () => collectGarbage({ isThorough: true }),
  }: IdleMemoryOptions) {
    this.world = world
    this.resident = resident
    this.collect = collect
  }

  start(): void {
    this.stop()
    this.least = Math.min(this.least, this.resident() ?? Infinity)
    this.stopTimer = this.world.after(checkMs, () => {
      this.check()
      this.start()
    })
  }

  stop(): void {
    this.stopTimer()
  }

  /** Notes that a request came. */
  active(): void {
    this.wasActive = true
    this.isDue = true
  }

  private check(): void {
    const resident = this.resident()
    if (!this.wasActive && this.isDue && resident !== null && resident > this.least * growth) {
      this.collect()
      this.isDue = false
    }
    this.wasActive = false
  }
}

/** Asking takes a file, which a busy server may not get. */
function residentBytes(): number | null {
  try {
    return process.memoryUsage.rss()
  } catch {
    return null
  }
}
