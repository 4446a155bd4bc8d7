import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../process/log.ts'
import { recordHeartbeats } from '../resources/devices/store.ts'

/** Collects heartbeats in memory and writes those of one second in one statement, however many devices there are. */
export class Heartbeats {
  private readonly options: { root: Knex; world: World; log: Log }
  private beats = new Map<string, number>()
  private cancel: (() => void) | null = null
  private work: Promise<void> = Promise.resolve()
  private stopped = true

  constructor(options: { root: Knex; world: World; log: Log }) {
    this.options = options
  }

  start(): void {
    this.stopped = false
  }

  async stop(): Promise<void> {
    this.stopped = true
    this.cancel?.()
    this.cancel = null
    this.flush()
    await this.work
  }

  beat(deviceId: string): void {
    this.beats.set(deviceId, this.options.world.now())
    if (this.stopped || this.cancel) return
    this.cancel = this.options.world.after(1_000, () => {
      this.cancel = null
      this.flush()
    })
  }

  /** Runs a write in order with the heartbeats. */
  after(task: () => Promise<void>): void {
    this.work = this.work.then(task).catch((error: unknown) => {
      this.options.log.warn({ err: error }, 'the state of a link was not written')
    })
  }

  private flush(): void {
    if (this.beats.size === 0) return
    const latest = Math.max(...this.beats.values())
    // One time for all of them: they are at most a second apart, and a lease is ninety.
    const beats = [...this.beats.keys()].map((deviceId) => ({ deviceId, at: latest }))
    this.beats = new Map()
    this.after(() => recordHeartbeats(this.options.root, beats))
  }
}
