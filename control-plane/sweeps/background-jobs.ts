import type { Knex } from 'knex'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { World } from '../../shared/lib/world.ts'
import type { Bus } from '../db/bus.ts'
import { KeyedQueue } from '../process/keyed-queue.ts'
import type { Log } from '../process/log.ts'
import type { Sweep } from './sweeper.ts'

/**
 * Work that is too long for the transaction of a request. The request marks what is to be done and publishes
 * `job.requested`; the work is done here, in batches that each are a transaction of their own:
 *
 *   marked --job.requested, or the sweep--> at work --batch, batch, ...--> done (the mark is gone)
 *                                              `-- killed, failed --> marked
 *
 * The mark is the only state, so a kill only delays. Every replica hears of the job. A batch first locks the mark and leaves it
 * to whoever has it, so two replicas share the batches and wait for each other no longer than that.
 */
export interface BackgroundJob {
  name: string
  /** Ids of what is marked, oldest first. */
  list(root: Knex): Promise<string[]>
  /** Does one batch. `taken`: another replica is at it. */
  runBatch(root: Knex, id: string): Promise<'more' | 'done' | 'taken'>
}

export interface BackgroundJobsOptions {
  root: Knex
  world: World
  log: Log
  bus: Bus
  jobs: readonly BackgroundJob[]
}

export class BackgroundJobs {
  private readonly options: BackgroundJobsOptions
  private readonly work: KeyedQueue
  private unsubscribe: (() => void) | null = null

  constructor(options: BackgroundJobsOptions) {
    this.options = options
    this.work = new KeyedQueue(options.log, 'a background job failed; the sweep tries again')
  }

  start(): void {
    if (this.unsubscribe !== null) return
    this.work.start()
    this.unsubscribe = this.options.bus.on('job.requested', ({ key, payload }) => {
      const job = this.options.jobs.find(({ name }) => name === payload.job)
      if (job !== undefined) this.add(job, key)
    })
  }

  /** Ends after the batches at work; what is left is done by another replica, or after the next start. */
  async stop(): Promise<void> {
    this.unsubscribe?.()
    this.unsubscribe = null
    await this.work.stop()
  }

  /** Catches what an event missed. */
  sweep(everyMs: number): Sweep {
    return {
      name: 'background_jobs',
      everyMs,
      run: async ({ root }) => {
        for (const job of this.options.jobs) for (const id of await job.list(root)) this.add(job, id)
      },
      idle: () => this.work.idle(),
    }
  }

  /** A line for each, in which a batch follows the one before. */
  private add(job: BackgroundJob, id: string): void {
    this.work.add(`${job.name} ${id}`, () => this.run(job, id), id)
  }

  private async run(job: BackgroundJob, id: string): Promise<void> {
    const { root, log } = this.options
    const end = await job.runBatch(root, id)
    if (end === 'done') log.info({ job: job.name, id }, 'background job done')
    if (end !== 'more') return
    // Other work that waits for the database or the processor has a turn between two batches.
    await nextTurn()
    this.add(job, id)
  }
}
