import type { Knex } from 'knex'
import type { Bus } from '../db/bus.ts'
import { troubleOf } from '../db/dialect.ts'
import type { Tx } from '../db/open.ts'
import { inTransaction, type TransactionOptions } from '../db/transaction.ts'
import { IngestBatch, RunChangedError, runIdOf, type BatchOptions, type IngestItem } from './ingest-batch.ts'
import { LogHashes } from './log-hashes.ts'
import { Lines } from '../process/lines.ts'
import type { Log } from '../process/log.ts'
import type { RunRow } from '../resources/runs/store.ts'

/**
 * Stores what devices send about their runs: frames of events, last change-sets, endings. It is answered after the commit;
 * nothing is answered when the commit failed.
 *
 *   queue --all of one tick--> common batch --> stored and answered
 *                |                |-- the database is gone, again and again --> given up
 *                |                `-- a row is held, or something cannot be stored --.
 *                `-- of a run that decides, or that is in order already ------------> line of its workspace, in its turn
 *                                                                                     |--> stored and answered
 *                                                                                     `-- again and again in vain --> given up
 *
 * The common batch has events of all devices in order of arrival and waits for nobody. An ending, or an approval that is
 * raised, is decided upon: it waits for the turn of its workspace, so it stands in a line that holds up no other workspace,
 * with all that is there of its run, and what comes of that run until the line has stored it. So the order of a run is kept:
 * what the queue gave out before is stored when it gives out the next. A workspace whose turn is not to be had holds up its
 * own devices alone.
 *
 * Given up means that the links of the devices are closed, which send again after their reconnect delay. Where something of
 * one run cannot be stored, each run is stored by itself, and the link is closed only to the device whose run it is.
 *
 * The fence is checked in the same transaction as the write; a second frame with the same
 * numbers is compared with what is stored and never replaces it.
 */

export interface IngestOptions extends Omit<BatchOptions, 'hashes'> {
  root: Knex
  log: Log
  bus: Pick<Bus, 'signal'>
  onEnded(run: RunRow): void
}

type Waiting = IngestItem & { settled(): void }

const batchItems = 256
const batchBytes = 16 * 1024 * 1024
const attempts = 4
/** Somebody's transaction holds a row of a run, and may do so for as long as a write may take. */
const common: TransactionOptions = { below: 'run events', lockMs: 1_000 }

export class Ingest {
  private readonly options: IngestOptions
  private queue: Waiting[] = []
  private working: Promise<void> | null = null
  private readonly hashes = new LogHashes()
  /** What waits for its workspace's turn, by workspace. */
  private readonly inOrder = new Map<string, Waiting[]>()
  /** How many items of a run are in order, or being stored so. */
  private readonly countInOrder = new Map<string, number>()
  private readonly lines: Lines

  constructor(options: IngestOptions) {
    this.options = options
    this.lines = new Lines(options.log, 'what a device sent was neither stored nor given up')
    this.lines.start()
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
    do {
      await this.working
      await this.lines.idle()
    } while (this.working)
  }

  private async drain(): Promise<void> {
    // Leaves the tick, so that all frames the sockets delivered together share a commit.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.queue.length > 0) {
      const items = this.keepOrder(take(this.queue))
      if (items.length === 0) continue
      if (await this.store(items, common)) for (const item of items) item.settled()
      else this.putInOrder(items)
    }
  }

  /** Returns what is not to be put in order. */
  private keepOrder(items: Waiting[]): Waiting[] {
    const deciding = new Set(items.filter(isDeciding).map(runIdOf))
    if (deciding.size === 0 && this.countInOrder.size === 0) return items
    const goesInOrder = (runId: string) => deciding.has(runId) || this.countInOrder.has(runId)
    const { true: inOrder = [], false: others = [] } = Object.groupBy(items, (item) =>
      goesInOrder(runIdOf(item)) ? 'true' : 'false',
    )
    this.putInOrder(inOrder)
    return others
  }

  private putInOrder(items: readonly Waiting[]): void {
    for (const [workspaceId, ofWorkspace] of Map.groupBy(items, (item) => item.workspaceId)) {
      for (const runId of ofWorkspace.map(runIdOf))
        this.countInOrder.set(runId, (this.countInOrder.get(runId) ?? 0) + 1)
      const queue = this.inOrder.get(workspaceId) ?? []
      queue.push(...ofWorkspace)
      this.inOrder.set(workspaceId, queue)
      this.lines.add(workspaceId, () => this.storeInOrder(workspaceId), workspaceId)
    }
  }

  private async storeInOrder(workspaceId: string): Promise<void> {
    const queue = this.inOrder.get(workspaceId) ?? []
    const items = take(queue)
    if (queue.length === 0) this.inOrder.delete(workspaceId)
    else this.lines.add(workspaceId, () => this.storeInOrder(workspaceId), workspaceId)
    try {
      await this.store(items, { turns: [workspaceId] })
    } finally {
      for (const item of items) {
        const left = (this.countInOrder.get(runIdOf(item)) ?? 0) - 1
        if (left > 0) this.countInOrder.set(runIdOf(item), left)
        else this.countInOrder.delete(runIdOf(item))
        item.settled()
      }
    }
  }

  /** False when the common batch was not stored for a reason that one workspace may have: then it is for their lines. */
  private async store(items: readonly IngestItem[], how: TransactionOptions): Promise<boolean> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.storeOnce(items, how)
        return true
      } catch (error) {
        this.forget(items)
        this.options.log.error({ err: error, attempt, items: items.length }, 'events were not stored')
        const trouble = troubleOf(error)
        if (how === common && trouble !== 'database_unavailable') return false
        const isPassing = error instanceof RunChangedError || trouble !== null
        if (!isPassing && isOfSeveral(items)) return this.storeEach(items, how)
        if (!isPassing || attempt >= attempts) {
          for (const item of items) item.giveUp()
          return true
        }
        await this.options.world.sleep(50 * 4 ** attempt)
      }
    }
  }

  private async storeOnce(items: readonly IngestItem[], how: TransactionOptions): Promise<void> {
    let isAgain = false
    const apply = async (tx: Tx) => {
      // What an attempt that was undone has hashed is not stored.
      if (isAgain) this.forget(items)
      isAgain = true
      const work = new IngestBatch(tx, { ...this.options, hashes: this.hashes })
      await work.apply(items)
      return work
    }
    const batch = await inTransaction(this.options.root, apply, how)
    for (const count of batch.counted) count()
    for (const runId of batch.touched) this.options.bus.signal(`run:${runId}`)
    for (const reply of batch.replies) reply()
    for (const run of batch.ended) {
      this.hashes.forget(run.id)
      this.options.onEnded(run)
    }
  }

  private forget(items: readonly IngestItem[]): void {
    for (const item of items) this.hashes.forget(runIdOf(item))
  }

  private async storeEach(items: readonly IngestItem[], how: TransactionOptions): Promise<true> {
    for (const ofRun of Map.groupBy(items, runIdOf).values()) await this.store(ofRun, how)
    return true
  }
}

/** Takes what one transaction stores off the beginning of the queue. */
function take(queue: Waiting[]): Waiting[] {
  let bytes = 0
  let count = 0
  for (const item of queue) {
    bytes += item.kind === 'events' ? item.body.length : 1024
    if (count > 0 && (count >= batchItems || bytes > batchBytes)) break
    count++
  }
  return queue.splice(0, count)
}

const isOfSeveral = (items: readonly IngestItem[]) => new Set(items.map(runIdOf)).size > 1

/** Endings and raised approvals are decided upon, so they come in their order; frames alone are the hot path. */
const isDeciding = (item: IngestItem): boolean =>
  item.kind === 'ended' || (item.kind === 'events' && (item.header.approvals ?? []).length > 0)
