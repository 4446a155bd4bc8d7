import type { World } from '../../shared/lib/world.ts'
import type { DeviceSpans } from '../../shared/runs/spans.ts'

/** When a run came to each step, counted from the offer to its device. */
export class Timeline {
  readonly #world: Pick<World, 'monotonic'>
  readonly #origin: number
  readonly #spans: DeviceSpans = {}

  /** `offeredAgoMs`: how long ago the device was given the offer. */
  constructor(world: Pick<World, 'monotonic'>, offeredAgoMs = 0) {
    this.#world = world
    this.#origin = world.monotonic() - offeredAgoMs
  }

  /** Notes that the run has come to the step. The first time counts. */
  mark(step: Exclude<keyof DeviceSpans, 'hostCpu'>): void {
    this.#spans[step] ??= rounded(this.#world.monotonic() - this.#origin)
  }

  /** The steps so far, and what they cost this process. */
  spans(): DeviceSpans {
    const { user, system } = process.cpuUsage()
    return { ...this.#spans, hostCpu: rounded((user + system) / 1_000) }
  }
}

const rounded = (ms: number): number => Math.max(0, Math.round(10 * ms) / 10)
