import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../log.ts'

/** What happens by time. A sweep is repeatable and safe on several replicas at once: its writes are compare-and-set. */
export interface Sweep {
  name: string
  everyMs: number
  run(context: SweepContext): Promise<void>
}

export interface SweepContext {
  root: Knex
  now: number
  world: World
  log: Log
}

/** Runs sweeps one after another, each at its own interval; a failing one is logged and comes again. */
export class Sweeper {
  private readonly options: { root: Knex; world: World; log: Log; sweeps: readonly Sweep[]; tickMs: number }
  private readonly due = new Map<string, number>()
  private cancel: (() => void) | null = null
  private work: Promise<void> = Promise.resolve()
  private stopped = true

  constructor(options: { root: Knex; world: World; log: Log; sweeps: readonly Sweep[]; tickMs: number }) {
    this.options = options
  }

  start(): void {
    if (!this.stopped) return
    this.stopped = false
    // Not at once: a server that was away gives its devices one lease to come back before anything is expired.
    const now = this.options.world.monotonic()
    for (const sweep of this.options.sweeps) this.due.set(sweep.name, now + sweep.everyMs)
    this.tick()
  }

  async stop(): Promise<void> {
    this.stopped = true
    this.cancel?.()
    await this.work
  }

  /** Runs every sweep now (tests, and an operator's signal). */
  async runAll(): Promise<void> {
    for (const sweep of this.options.sweeps) await this.runOne(sweep)
  }

  private tick(): void {
    this.cancel = this.options.world.after(this.options.tickMs, () => {
      this.work = this.runDue().finally(() => {
        if (!this.stopped) this.tick()
      })
    })
  }

  private async runDue(): Promise<void> {
    const now = this.options.world.monotonic()
    for (const sweep of this.options.sweeps) {
      if (this.stopped || now < (this.due.get(sweep.name) ?? 0)) continue
      this.due.set(sweep.name, now + sweep.everyMs)
      await this.runOne(sweep)
    }
  }

  private async runOne(sweep: Sweep): Promise<void> {
    const { root, world, log } = this.options
    try {
      await sweep.run({ root, now: world.now(), world, log })
    } catch (error) {
      log.error({ err: error, sweep: sweep.name }, 'sweep failed')
    }
  }
}
