import type { DeviceRef, RunId, TaskId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import type { ServerMessage } from '../../../shared/device/protocol.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { Bus } from '../../db/bus.ts'
import type { Log } from '../../process/log.ts'
import type { Tx } from '../../db/open.ts'
import { changeRun } from '../change-store.ts'
import type { WithdrawalReason } from '../life.ts'
import { loadPlacementFacts } from '../placement/facts.ts'
import { hasRoom } from '../places/device-rules.ts'
import { placeAll } from '../placement/placement.ts'
import { KeyedQueue } from '../../process/keyed-queue.ts'
import { findWaiting, listWaiting, type WaitingRun } from '../placement/waiting-store.ts'
import { inTransaction } from '../../db/transaction.ts'
import { offerQueued, type OfferedRun, type Offering } from './offer.ts'

// Gives queued runs to devices, and tells devices of what is offered to them. It decides when a run is offered and when an
// offer is taken back; the machine (`../machine.ts`) says what comes of each, and what may interleave. Each replica offers only to
// devices that are linked to it. What offers runs of a workspace stands in a queue of its own, so that workspaces do not wait for each other.

/** The links of this replica, as far as dispatch needs them. */
export interface OfferPort {
  isLinked(publicId: DeviceRef): boolean
  /** False when the link is gone. */
  send(publicId: DeviceRef, message: ServerMessage): boolean
}

/** An offer as the device knows it that it was made to. */
export interface AnsweredOffer {
  runId: RunId
  fence: number
  device: DeviceRef
}

export interface DispatcherOptions {
  root: Knex
  world: World
  log: Log
  bus: Bus
  links: OfferPort
  replicaId: string
  leaseMs: number
  offerMs: number
}

/** The waiting runs that are looked at, and offered, at once. */
const batch = 200
const mostEnded = 1_000

export class Dispatcher implements Offering {
  readonly world: World
  readonly leaseMs: number
  readonly offerMs: number
  private readonly options: DispatcherOptions
  private readonly offers = new Map<string, { device: DeviceRef; taskId: TaskId | null; cancel: () => void }>()
  /** Runs that were queued since the last look. */
  private readonly queued = new Set<RunId>()
  /** The ones of them that wait to be offered, by workspace. */
  private readonly found = new Map<WorkspaceUuid, Set<RunId>>()
  /** Runs whose end was told here once: `runEnded` and the outbox each tell of it, in either order. */
  private readonly ended = new Set<string>()
  private readonly unsubscribe: (() => void)[] = []
  private readonly work: KeyedQueue

  constructor(options: DispatcherOptions) {
    this.options = options
    this.world = options.world
    this.leaseMs = options.leaseMs
    this.offerMs = options.offerMs
    this.work = new KeyedQueue(options.log, 'dispatch failed; the sweep tries again')
  }

  start(): void {
    if (!this.work.isStopped) return
    this.work.start()
    const { bus } = this.options
    this.unsubscribe.push(
      bus.on('run.queued', (row) => this.runQueued(row.key)),
      bus.on('run.ended', (row) => {
        if (typeof row.payload.workspaceId === 'string') this.lookOnce(row.key, row.payload.workspaceId)
      }),
      bus.on('device.changed', (row) => {
        if (typeof row.payload.workspaceId === 'string') this.capacityChanged(row.payload.workspaceId)
      }),
    )
  }

  async stop(): Promise<void> {
    for (const off of this.unsubscribe.splice(0)) off()
    for (const { cancel } of this.offers.values()) cancel()
    this.offers.clear()
    this.ended.clear()
    await this.work.stop()
  }

  /** A run was queued (or is again): looks for a device at once. */
  runQueued(runId: RunId): void {
    this.queued.add(runId)
    this.work.add('queued', () => this.findQueued(), 'queued')
  }

  /** Looks for runs for the room that this run left on its device: this replica ended it. The outbox says so, too, before or after. */
  runEnded({ id, workspaceId }: { id: RunId; workspaceId: WorkspaceUuid }): void {
    if (!this.work.isStopped) this.lookOnce(id, workspaceId)
  }

  /** Looks when it hears of the run's end for the first time. */
  private lookOnce(runId: RunId, workspaceId: WorkspaceUuid): void {
    if (this.ended.delete(runId)) return
    // The ends of most other runs only the outbox tells. A forgotten id costs another look.
    if (this.ended.size >= mostEnded) this.ended.clear()
    this.ended.add(runId)
    this.capacityChanged(workspaceId)
  }

  /** A device of the workspace connected, changed or has room: runs that wait are offered to it, oldest first. */
  capacityChanged(workspaceId: WorkspaceUuid): void {
    this.work.add(workspaceId, () => this.offerWaiting(workspaceId), 'waiting')
  }

  readonly isLinked = (publicId: DeviceRef): boolean => !this.work.isStopped && this.options.links.isLinked(publicId)

  /** Tells the device of an offer that is committed. It waits for nothing, so any commit may be followed by it. */
  push(offered: OfferedRun): void {
    const { runId, fence, device, spec } = offered
    const { links, offerMs } = this.options
    this.watchOffer(offered)
    const sent = links.send(device, { type: 'run.offer', runId, fence, spec, expiresInMs: offerMs })
    if (!sent) this.work.add(runId, () => this.withdraw({ runId, fence, device }, 'not_sent'))
  }

  /**
   * The device answered the offer: its time limit is off. Returns what this replica knows of the offer; null when it was
   * made to another device.
   */
  settled({ runId, fence, device }: AnsweredOffer): { taskId: TaskId | null } | null {
    const key = `${runId}/${fence}`
    const offered = this.offers.get(key) ?? null
    if (offered === null || offered.device !== device) return null
    offered.cancel()
    this.offers.delete(key)
    return offered
  }

  /** Takes back an offer that was made to the device and looks for another one. */
  async withdraw(offer: AnsweredOffer, why: WithdrawalReason): Promise<void> {
    this.settled(offer)
    const { runId, fence, device } = offer
    const isBack = await changeRun(this.options.root, runId, { type: 'offer_withdrawn', fence, device, why })
    if (isBack) this.runQueued(runId)
  }

  /** Resolves when nothing that was asked for is still being done. */
  async idle(): Promise<void> {
    await this.work.idle()
  }

  private async findQueued(): Promise<void> {
    const runIds = [...this.queued]
    this.queued.clear()
    for (let at = 0; at < runIds.length; at += batch) {
      for (const { id, workspaceId } of await findWaiting(this.options.root, runIds.slice(at, at + batch))) {
        const found = this.found.get(workspaceId) ?? new Set()
        this.found.set(workspaceId, found.add(id))
        this.work.add(workspaceId, () => this.offerFound(workspaceId), 'found')
      }
    }
  }

  private async offerFound(workspaceId: WorkspaceUuid): Promise<void> {
    const runIds = [...(this.found.get(workspaceId) ?? [])]
    this.found.delete(workspaceId)
    for (let at = 0; at < runIds.length; at += batch) await this.offer(workspaceId, runIds.slice(at, at + batch))
  }

  /** Looks at every run that waits, since a run that is held by a gate may stand before one that is not. */
  private async offerWaiting(workspaceId: WorkspaceUuid): Promise<void> {
    const { root, world, leaseMs } = this.options
    let page = await listWaiting(root, { workspaceId, after: null, limit: batch })
    if (page.length === 0) return
    let facts = await loadPlacementFacts(root, workspaceId, { now: world.now(), leaseMs })
    while (page.length > 0 && facts.devices.some((device) => hasRoom(device) && this.isLinked(device.publicId))) {
      const { placed, left } = placeAll(page, facts)
      facts = left
      const ours = placed.filter(({ publicId }) => this.isLinked(publicId)).map(({ run }) => run)
      if (ours.length > 0) await this.offer(workspaceId, idsOf(ours))
      page = await listWaiting(root, { workspaceId, after: page.at(-1)!, limit: batch })
    }
  }

  /** Offers those of the runs that wait and that a device linked to this replica may take now. */
  private async offer(workspaceId: WorkspaceUuid, runIds: readonly RunId[]): Promise<void> {
    try {
      await this.offerTogether(workspaceId, runIds)
    } catch (error) {
      if (runIds.length === 1) throw error
      // A run that cannot be offered holds up none of the others.
      this.options.log.warn({ err: error, runs: runIds.length }, 'runs were not offered together; each is by itself')
      for (const runId of runIds) this.work.add(workspaceId, () => this.offerTogether(workspaceId, [runId]))
    }
  }

  private async offerTogether(workspaceId: WorkspaceUuid, runIds: readonly RunId[]): Promise<void> {
    const work = (tx: Tx) => offerQueued(tx, { workspaceId, runIds }, this)
    const offered = await inTransaction(this.options.root, work, { locks: [workspaceId] })
    for (const run of offered) this.push(run)
  }

  private watchOffer({ runId, fence, device, taskId }: OfferedRun): void {
    const key = `${runId}/${fence}`
    const cancel = this.options.world.after(this.options.offerMs, () => {
      this.offers.delete(key)
      this.options.log.warn({ runId, fence }, 'offer not answered in time')
      this.work.add(runId, () => this.withdraw({ runId, fence, device }, 'not_answered'))
    })
    this.offers.set(key, { device, taskId, cancel })
  }
}

const idsOf = (runs: readonly WaitingRun[]) => runs.map((run) => run.id)
