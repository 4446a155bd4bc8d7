import type { World } from '../../shared/lib/world.ts'

/** `svc device restart --drain` asks each second. */
const drainMs = 5_000

/** Takes no new runs for as long as it is asked again: whoever waits for the live ones may be gone before they are over. */
export class Drain {
  isOn = false
  private readonly world: World
  private readonly changed: () => void
  private cancel: (() => void) | null = null

  constructor(world: World, changed: () => void) {
    this.world = world
    this.changed = changed
  }

  set(on: boolean): void {
    this.cancel?.()
    this.cancel = on ? this.world.after(drainMs, () => this.set(false)) : null
    this.isOn = on
    this.changed()
  }
}
