import type { World } from '../../shared/lib/world.ts'

/** When the control plane was heard last, and the heartbeats that keep the lease. */
export class Contact {
  private readonly world: World
  private last: { wall: number; monotonic: number }
  private cancelBeat: (() => void) | null = null

  constructor(world: World) {
    this.world = world
    this.last = { wall: world.now(), monotonic: world.monotonic() }
  }

  heard(): void {
    this.last = { wall: this.world.now(), monotonic: this.world.monotonic() }
  }

  /** Milliseconds since the control plane was heard; a machine that slept stops one of its clocks, so the larger counts. */
  silence(): number {
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

  stop(): void {
    this.cancelBeat?.()
  }
}
