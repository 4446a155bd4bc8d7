import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import { Lines } from '../process/lines.ts'
import type { Log } from '../process/log.ts'

/** What happens by time. A sweep is repeatable and safe on several replicas at once: its writes are compare-and-set. */
export interface Sweep {
  name: string
  everyMs: number
  /** Looks for what is to be done, and hands it on where a workspace may make it wait. */
  run(context: SweepContext): Promise<void>
  /** Resolves when what it handed on to others than `lines` is done. */
  idle?(): Promise<void>
}

export interface SweepContext {
  root: Knex
  now: number
  world: World
  log: Log
  /**
   * What writes in a workspace stands in its line, by a key of its own: what waits there since an earlier round is not
   * asked for twice, and what fails comes again with the next round. Neither holds up other workspaces or other sweeps.
   */
  lines: Lines
}

/**
 * The first pass of a sweep with a longer period: a server that is restarted more often than that would else never run it.
 * Not at once, since all else starts at that moment. (Sweeps that judge devices by their silence count from the start.)
 */
const firstMs = 30_000

/**
 * Runs sweeps one after another, each at its own interval; a failing one is logged and comes again. None of them waits for
 * what is written in the workspaces, which goes on beside them in `lines`.
 */
export class Sweeper {
  private readonly options: { root: Knex; world: World; log: Log; sweeps: readonly Sweep[]; tickMs: number }
  private readonly due = new Map<string, number>()
  private readonly lines: Lines
  private cancel: (() => void) | null = null
  private work: Promise<void> = Promise.resolve()
  private stopped = true

  constructor(options: { root: Knex; world: World; log: Log; sweeps: readonly Sweep[]; tickMs: number }) {
    this.options = options
    this.lines = new Lines(options.log, 'a sweep failed at one of many; it comes again')
    // Sweeps may be run without a clock (`runAll`).
    this.lines.start()
  }

  start(): void {
    if (!this.stopped) return
    this.stopped = false
    this.lines.start()
    const now = this.options.world.monotonic()
    for (const { name, everyMs } of this.options.sweeps) this.due.set(name, now + Math.min(everyMs, firstMs))
    this.tick()
  }

  async stop(): Promise<void> {
    this.stopped = true
    this.cancel?.()
    await this.work
    await this.lines.stop()
  }

  /** Runs every sweep now, each when all is done that came of the one before (tests, and an operator's signal). */
  async runAll(): Promise<void> {
    for (const sweep of this.options.sweeps) {
      await this.runOne(sweep)
      await this.lines.idle()
      await sweep.idle?.()
    }
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
      await sweep.run({ root, now: world.now(), world, log, lines: this.lines })
    } catch (error) {
      log.error({ err: error, sweep: sweep.name }, 'sweep failed')
    }
  }
}
