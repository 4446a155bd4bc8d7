import { ClockWatch } from '../../shared/lib/clock-watch.ts'
import type { World } from '../../shared/lib/world.ts'

/** The time in which a machine that woke reaches the control plane, if it is there. */
const reachMs = 60_000

/** When the control plane was heard last, and the heartbeats that keep the lease. */
export class Contact {
  private readonly world: World
  private last: { wall: number; monotonic: number }
  private cancelBeat: (() => void) | null = null
  private cancelLook: (() => void) | null = null
  /** By the monotonic clock. */
  private awakeSince = -Infinity
  private readonly clock: ClockWatch

  constructor(world: World) {
    this.world = world
    this.clock = new ClockWatch({ world, jumpMs: reachMs, onJump: () => (this.awakeSince = world.monotonic()) })
    this.last = { wall: world.now(), monotonic: world.monotonic() }
  }

  heard(): void {
    this.last = { wall: this.world.now(), monotonic: this.world.monotonic() }
  }

  /** Milliseconds since the control plane was heard; a machine that slept stops one of its clocks, so the larger counts. */
  private silence(): number {
    return Math.max(this.world.now() - this.last.wall, this.world.monotonic() - this.last.monotonic)
  }

  /** Calls `beat` about every `everyMs` until it says false. */
  keepBeating(everyMs: number, beat: () => boolean): void {
    this.cancelBeat?.()
    // ± 20 %, so that devices welcomed in one second do not beat in one second for ever.
    const ms = everyMs * (0.8 + 0.4 * this.world.random())
    this.cancelBeat = this.world.after(ms, () => {
      if (beat()) this.keepBeating(everyMs, beat)
    })
  }

  /**
   * Calls `look` every `everyMs`, which is less than a minute, with the silence. A machine that slept has a minute to reach the
   * control plane again, which may have slept on the same machine; until then the silence is 0.
   */
  keepLooking(everyMs: number, look: (silentMs: number) => void): void {
    this.cancelLook = this.world.after(everyMs, () => {
      this.clock.look()
      const isJustAwake = this.world.monotonic() - this.awakeSince < reachMs
      look(isJustAwake ? 0 : this.silence())
      this.keepLooking(everyMs, look)
    })
  }

  stop(): void {
    this.cancelBeat?.()
    this.cancelLook?.()
  }
}
