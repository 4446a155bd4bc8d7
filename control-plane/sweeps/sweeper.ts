import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import { ClockWatch } from '../../shared/lib/clock-watch.ts'
import { KeyedQueue } from '../process/keyed-queue.ts'
import type { Log } from '../process/log.ts'

/** Periodic work. A sweep is repeatable and safe on several replicas at once: its writes are compare-and-set. */
export interface Sweep {
  name: string
  everyMs: number
  /** Looks for work, and hands it on when a workspace may make it wait. */
  run(context: SweepContext): Promise<void>
  /** Resolves when work is done that it handed on to anything but `lines`. */
  idle?(): Promise<void>
}

export interface SweepContext {
  root: Knex
  now: number
  /**
   * Returns the time since which this server runs without a break. What devices said before that, nobody heard.
   */
  awakeSince: () => number
  world: World
  log: Log
  /**
   * Writes to a workspace go into its queue, by a key of their own: work that still waits there since an earlier round
   * is not added twice, and failed work comes again with the next round. Neither holds up other workspaces or other
   * sweeps.
   */
  queue: KeyedQueue
}

/**
 * The delay before the first pass of a sweep with a longer period, since a server that is restarted more often than
 * that would otherwise never run it. Not at once, because everything else starts at that moment. (Sweeps that judge
 * devices by their silence count from the start.)
 */
const firstMs = 30_000

interface Jobs {
  start(): void
  stop(): Promise<void>
}

interface SweeperOptions {
  root: Knex
  world: World
  log: Log
  sweeps: readonly Sweep[]
  /** Jobs that start and stop with the sweeper; one of its sweeps catches what they missed. */
  jobs?: Jobs
  tickMs: number
  /**
   * A jump of the clock by more than this says that the machine slept or that this process was stopped; default: none does,
   * as where a test moves the clock.
   */
  jumpMs?: number
  /** Is told how sweeps go. */
  observer?: SweepObserver
}

export interface SweepObserver {
  /** Called before anything else with the names of all sweeps. */
  begin(sweeps: readonly string[]): void
  swept(sweep: string, end: 'done' | 'failed'): void
  /** What a sweep handed on failed. */
  itemFailed(): void
}

/**
 * Runs sweeps one after another, each at its own interval; a failed one is logged and comes again. None waits for the
 * writes to workspaces, which proceed in `lines`.
 */
export class Sweeper {
  private readonly options: SweeperOptions
  private readonly due = new Map<string, number>()
  private readonly queue: KeyedQueue
  private cancel: (() => void) | null = null
  private work: Promise<void> = Promise.resolve()
  private stopped = true
  private readonly clock: ClockWatch
  private awakeSince: number

  constructor(options: SweeperOptions) {
    this.options = options
    const { world, log, jumpMs = Infinity } = options
    this.awakeSince = world.now()
    const onJump = (ms: number) => {
      this.awakeSince = world.now()
      log.info({ ms }, 'the machine slept or the server was held up')
    }
    this.clock = new ClockWatch({ world, jumpMs, onJump })
    const { observer } = options
    this.queue = new KeyedQueue(options.log, 'a sweep failed at one of many; it comes again', () =>
      observer?.itemFailed(),
    )
    observer?.begin(options.sweeps.map(({ name }) => name))
    // The queue starts here, since sweeps may be run without a clock (`runAll`).
    this.queue.start()
  }

  /** Jobs that go on in batches after the requests that asked for them. */
  get jobs(): Jobs | undefined {
    return this.options.jobs
  }

  get isRunning(): boolean {
    return !this.stopped
  }

  start(): void {
    if (!this.stopped) return
    this.stopped = false
    this.queue.start()
    this.jobs?.start()
    this.clock.start(this.options.tickMs)
    const now = this.options.world.monotonic()
    for (const { name, everyMs } of this.options.sweeps) this.due.set(name, now + Math.min(everyMs, firstMs))
    this.tick()
  }

  async stop(): Promise<void> {
    this.stopped = true
    this.clock.stop()
    this.cancel?.()
    await this.work
    await Promise.all([this.queue.stop(), this.jobs?.stop()])
  }

  /** Runs every sweep now, each after all work of the one before is done (for tests, and for an operator's signal). */
  async runAll(): Promise<void> {
    for (const sweep of this.options.sweeps) {
      await this.runOne(sweep)
      await this.queue.idle()
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
    const { root, world, log, observer } = this.options
    try {
      await sweep.run({ root, now: world.now(), awakeSince: this.sinceAwake, world, log, queue: this.queue })
      observer?.swept(sweep.name, 'done')
    } catch (error) {
      observer?.swept(sweep.name, 'failed')
      log.error({ err: error, sweep: sweep.name }, 'sweep failed')
    }
  }

  private readonly sinceAwake = (): number => {
    this.clock.check()
    return this.awakeSince
  }
}
