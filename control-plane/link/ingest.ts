import type { RunId, WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import type { Bus } from '../db/bus.ts'
import { databaseTroubleOf } from '../db/dialect.ts'
import type { Tx } from '../db/open.ts'
import { inTransaction, type TransactionOptions } from '../db/transaction.ts'
import type { IngestItem } from './ingest-item.ts'
import { IngestBatch, readRuns, RunChangedError, runIdOf, type BatchOptions } from './ingest-batch.ts'
import { LogHashes } from './log-hashes.ts'
import { KeyedQueue } from '../process/keyed-queue.ts'
import type { Log } from '../process/log.ts'
import type { RunRow } from '../resources/runs/store.ts'

// Stores everything devices send about their runs: frames of events, final change-sets, endings. Each item is answered
// after its commit, and not at all when the commit failed.
//
//   queue --all of one tick--> common batch --> stored and answered
//                |                |-- the database is gone, again and again --> given up
//                |                `-- a row is held, or something cannot be stored --.
//                `-- of a run that decides, or that is in order already ------------> queue of its workspace
//                                                                                     |--> stored and answered
//                                                                                     `-- again and again in vain --> given up
//
// The common batch has events of all devices in order of arrival and waits for nobody. An ending or a raised approval is
// a decision and waits for the lock of its workspace. So it goes into a queue that holds up no other workspace, together
// with everything queued for its run, and with everything that arrives for that run until the queue has stored it. This
// keeps the order within a run, since each item of the queue is stored before the next is taken. A workspace that cannot
// get its lock holds up only its own devices.
//
// Decisions alone take the lock, for which all writes of the workspace wait. After a device went from one replica to
// another, its frames wait for rows that the other one still writes, are compared with what is stored, and its logs are hashed anew:
// all of that is done before.
//
// Giving up closes the links of the devices, which send again after their reconnect delay. If one item cannot be stored,
// each run is stored by itself, and only the link of that run's device is closed.
//
// The fence is checked in the same transaction as the write. A second frame with the same numbers is compared with the
// stored one and never replaces it.

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
/** Another transaction may hold a row of a run for as long as a write may take. */
const common: TransactionOptions = { below: 'run events', lockMs: 1_000 }
/** Events in the queue of a workspace wait for a row as long as a write may take, and nobody but that queue waits for them. */
const patient: TransactionOptions = { below: 'run events' }
/** The time is short, since all writes of its workspace wait for the lock while a decision waits for a row. */
const decisionLockMs = 2_000

export class Ingest {
  private readonly options: IngestOptions
  private queue: Waiting[] = []
  private working: Promise<void> | null = null
  private readonly hashes = new LogHashes()
  /** Items that wait for the lock of their workspace, by workspace. */
  private readonly inOrder = new Map<string, Waiting[]>()
  /** The number of items that are in a queue or being stored from one, by run. */
  private readonly countInOrder = new Map<string, number>()
  private readonly keyedQueue: KeyedQueue

  constructor(options: IngestOptions) {
    this.options = options
    this.keyedQueue = new KeyedQueue(options.log, 'what a device sent was neither stored nor given up')
    this.keyedQueue.start()
  }

  /** Resolves when the item is stored and answered, or given up. */
  push(item: IngestItem): Promise<void> {
    const settled = new Promise<void>((resolve) => this.queue.push({ ...item, settled: resolve }))
    if (!this.working) this.work()
    return settled
  }

  private work(): void {
    this.working = this.drain().finally(() => {
      this.working = null
      // An item may have arrived after the last check, while the drain still counted as working.
      if (this.queue.length > 0) this.work()
    })
  }

  /** Resolves when all pushed items are stored and answered. */
  async idle(): Promise<void> {
    do {
      await this.working
      await this.keyedQueue.idle()
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

  /** Puts items that need order into queues and returns the others. */
  private keepOrder(items: Waiting[]): Waiting[] {
    const deciding = new Set(items.filter(isDeciding).map(runIdOf))
    if (deciding.size === 0 && this.countInOrder.size === 0) return items
    const goesInOrder = (runId: RunId) => deciding.has(runId) || this.countInOrder.has(runId)
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
      this.keyedQueue.add(workspaceId, () => this.storeInOrder(workspaceId), workspaceId)
    }
  }

  private async storeInOrder(workspaceId: WorkspaceUuid): Promise<void> {
    const queue = this.inOrder.get(workspaceId) ?? []
    const items = take(queue)
    if (queue.length === 0) this.inOrder.delete(workspaceId)
    else this.keyedQueue.add(workspaceId, () => this.storeInOrder(workspaceId), workspaceId)
    try {
      const { events = [], decisions = [] } = byNeedOfLock(items)
      if (events.length > 0) await this.storeEvents(events)
      if (decisions.length > 0) await this.store(decisions, { locks: [workspaceId], lockMs: decisionLockMs })
    } finally {
      for (const item of items) {
        const left = (this.countInOrder.get(runIdOf(item)) ?? 0) - 1
        if (left > 0) this.countInOrder.set(runIdOf(item), left)
        else this.countInOrder.delete(runIdOf(item))
        item.settled()
      }
    }
  }

  /** Stores them together where that needs no long wait; else run by run, so that a wait for the row of one holds up no other. */
  private async storeEvents(events: readonly Waiting[]): Promise<void> {
    if (isOfSeveral(events) && (await this.store(events, common))) return
    for (const ofRun of Map.groupBy(events, runIdOf).values()) await this.store(ofRun, patient)
  }

  /**
   * Returns false when the common batch failed for a reason that one workspace may have: then its items go to the
   * queues.
   */
  private async store(items: readonly IngestItem[], how: TransactionOptions): Promise<boolean> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.storeOnce(items, how)
        return true
      } catch (error) {
        this.forget(items)
        this.options.log.error({ err: error, attempt, items: items.length }, 'events were not stored')
        const trouble = databaseTroubleOf(error)
        if (how === common && trouble !== 'database_unavailable') return false
        const isPassing = error instanceof RunChangedError || trouble !== null
        const isLast = attempt >= attempts && trouble !== 'database_unavailable'
        // One run whose row somebody else writes gives up none of the others.
        const isOfOne = !isPassing || error instanceof RunChangedError || isLast
        if (isOfOne && isOfSeveral(items)) return this.storeEach(items, how)
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
    const apply = async (tx: Tx, runs: Awaited<ReturnType<typeof readRuns>>) => {
      // The hashes of an attempt that was rolled back are dropped.
      if (isAgain) this.forget(items)
      isAgain = true
      const work = new IngestBatch(tx, { ...this.options, hashes: this.hashes, runs })
      await work.apply(items)
      return work
    }
    if (how.locks !== undefined) await this.hashes.catchUp(this.options.root, items.flatMap(hashedEndingOf))
    const batch = await inTransaction(this.options.root, apply, { ...how, ahead: (db) => readRuns(db, items) })
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

/** Removes the items for one transaction from the beginning of the queue. */
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

/** Events are stored without the lock, up to the first decision of their run. */
function byNeedOfLock(items: readonly Waiting[]): Partial<Record<'events' | 'decisions', Waiting[]>> {
  const decided = new Set<string>()
  return Object.groupBy(items, (item) => {
    if (isDeciding(item)) decided.add(runIdOf(item))
    return decided.has(runIdOf(item)) ? 'decisions' : 'events'
  })
}

const hashedEndingOf = (item: IngestItem) =>
  item.kind === 'ended' && item.report.logHash !== ''
    ? [{ runId: item.runId, fence: item.fence, device: item.device, eventCount: item.report.eventCount }]
    : []

const isOfSeveral = (items: readonly IngestItem[]) => new Set(items.map(runIdOf)).size > 1

/** Endings and raised approvals are decisions and need their order; plain frames are the hot path. */
const isDeciding = (item: IngestItem): boolean =>
  item.kind === 'ended' || (item.kind === 'events' && (item.header.approvals ?? []).length > 0)
