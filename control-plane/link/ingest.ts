import type { Knex } from 'knex'
import type { Bus } from './bus.ts'
import { troubleOf } from '../db/dialect.ts'
import { IngestBatch, RunChangedError, runIdOf, type BatchOptions, type IngestItem } from './ingest-batch.ts'
import { LogHashes } from './log-hashes.ts'
import type { Log } from '../log.ts'
import type { RunRow } from '../resources/runs/store.ts'

/**
 * Stores what devices send about their runs: frames of events, last change-sets, endings. All that arrived in one tick
 * goes into one transaction, in order of arrival, and is answered after the commit. Nothing is answered when the commit
 * failed. Where the database is in trouble the same work is tried again, and after a few failures the links are closed so
 * that devices send again after their reconnect delay. Otherwise something of one run cannot be stored: each run is then
 * stored by itself, and the link is closed only to the device whose run it is.
 *
 * The fence is checked in the same transaction as the write (I4 of the fault matrix); a second frame with the same
 * numbers is compared with what is stored and never replaces it.
 */

export interface IngestOptions extends Omit<BatchOptions, 'hashes'> {
  root: Knex
  log: Log
  bus: Pick<Bus, 'signal' | 'poke'>
  onEnded(run: RunRow): void
}

type Waiting = IngestItem & { settled(): void }

const batchItems = 256
const batchBytes = 16 * 1024 * 1024
const attempts = 4

export class Ingest {
  private readonly options: IngestOptions
  private queue: Waiting[] = []
  private working: Promise<void> | null = null
  private readonly hashes = new LogHashes()

  constructor(options: IngestOptions) {
    this.options = options
  }

  /** Resolves when it is stored and answered, or given up. */
  push(item: IngestItem): Promise<void> {
    const settled = new Promise<void>((resolve) => this.queue.push({ ...item, settled: resolve }))
    if (!this.working) this.work()
    return settled
  }

  private work(): void {
    this.working = this.drain().finally(() => {
      this.working = null
      // It came after the last look, when somebody was still at work.
      if (this.queue.length > 0) this.work()
    })
  }

  /** Resolves when all that was pushed is stored and answered. */
  async idle(): Promise<void> {
    while (this.working) await this.working
  }

  private async drain(): Promise<void> {
    // Leaves the tick, so that all frames the sockets delivered together share a commit.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.queue.length > 0) {
      const items = this.take()
      await this.store(items)
      for (const item of items) item.settled()
    }
  }

  private take(): Waiting[] {
    let bytes = 0
    let count = 0
    for (const item of this.queue) {
      bytes += item.kind === 'events' ? item.body.length : 1024
      if (count > 0 && (count >= batchItems || bytes > batchBytes)) break
      count++
    }
    return this.queue.splice(0, count)
  }

  private async store(items: IngestItem[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        const batch = await this.options.root.transaction(async (tx) => {
          const work = new IngestBatch(tx, { ...this.options, hashes: this.hashes })
          await work.apply(items)
          return work
        })
        for (const runId of batch.touched) this.options.bus.signal(`run:${runId}`)
        for (const reply of batch.replies) reply()
        for (const run of batch.ended) {
          this.hashes.forget(run.id)
          this.options.onEnded(run)
        }
        if (batch.ended.length > 0) this.options.bus.poke()
        return
      } catch (error) {
        for (const item of items) this.hashes.forget(runIdOf(item))
        this.options.log.error({ err: error, attempt, items: items.length }, 'events were not stored')
        const isPassing = error instanceof RunChangedError || troubleOf(error) !== null
        if (!isPassing && this.isOfSeveral(items)) return this.storeEach(items)
        if (!isPassing || attempt >= attempts) {
          for (const item of items) item.giveUp()
          return
        }
        await this.options.world.sleep(50 * 4 ** attempt)
      }
    }
  }

  private isOfSeveral(items: readonly IngestItem[]): boolean {
    return new Set(items.map(runIdOf)).size > 1
  }

  private async storeEach(items: readonly IngestItem[]): Promise<void> {
    for (const ofRun of Map.groupBy(items, runIdOf).values()) await this.store(ofRun)
  }
}
