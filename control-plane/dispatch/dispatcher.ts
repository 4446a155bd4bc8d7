import type { Knex } from 'knex'
import type { ServerMessage } from '../../shared/device/protocol.ts'
import type { World } from '../../shared/lib/world.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import type { Bus } from '../link/bus.ts'
import type { Log } from '../log.ts'
import { findDetails } from '../resources/runs/details-store.ts'
import { findDeviceByPublicId } from '../resources/devices/store.ts'
import { listQueued } from '../resources/runs/live-store.ts'
import { findRun, offerRun, withdrawOffer } from '../resources/runs/store.ts'
import { cancelRun } from './cancel-run.ts'
import { loadRunFacts, lockPlacement } from './facts.ts'
import { placeRun } from './placement.ts'
import { SerialWork } from './serial-work.ts'

/**
 * Gives queued runs to devices. It owns the step none -> offered of a lease and back (but for a run that is offered by
 * the transaction which inserts it, see start-run.ts); the claim (offered -> claimed) is made by the link when the device
 * answers.
 *
 * What may interleave: two dispatches of one run (compare-and-set on the fence lets one win), a claim that arrives while
 * the offer expires (both are compare-and-set on `lease_state`, so one of them finds nothing to change), another replica
 * dispatching the same run (each offers only to devices linked to itself).
 */

/** The links of this replica, as far as dispatch needs them. */
export interface OfferPort {
  isLinked(publicId: string): boolean
  /** False when the link is gone. */
  send(publicId: string, message: ServerMessage): boolean
}

/** A run that the database gives to a device, before the device was told. */
export interface OfferedRun {
  runId: string
  fence: number
  /** Durable id. */
  device: string
  taskId: string | null
  spec: RunSpec
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

/** Queued runs looked at when capacity came free; more wait for the next event. */
const batch = 100

export class Dispatcher {
  private readonly options: DispatcherOptions
  private readonly offers = new Map<string, { taskId: string | null; cancel: () => void }>()
  private readonly unsubscribe: (() => void)[] = []
  private readonly work: SerialWork

  constructor(options: DispatcherOptions) {
    this.options = options
    this.work = new SerialWork(options.log, 'dispatch failed; the sweep tries again')
  }

  start(): void {
    if (!this.work.isStopped) return
    this.work.start()
    const { bus } = this.options
    this.unsubscribe.push(
      bus.on('run.queued', (row) => this.runQueued(row.key)),
      bus.on('run.ended', (row) => {
        if (typeof row.payload.workspaceId === 'string') this.capacityChanged(row.payload.workspaceId)
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
    await this.work.stop()
  }

  /** A run was queued (or is again): looks for a device at once. */
  runQueued(runId: string): void {
    this.work.add(() => this.dispatch(runId), runId)
  }

  /** A device of the workspace connected, changed or has room: looks at what waits, oldest first. */
  capacityChanged(workspaceId: string): void {
    this.work.add(async () => {
      const waiting = await listQueued(this.options.root, { workspaceId, limit: batch })
      for (const run of waiting) if (run.leaseState === 'none') await this.dispatch(run.id)
    }, `workspace:${workspaceId}`)
  }

  get offerMs(): number {
    return this.options.offerMs
  }

  isLinked(publicId: string): boolean {
    return !this.work.isStopped && this.options.links.isLinked(publicId)
  }

  /** Tells the device of an offer that is committed. It waits for nothing, so any commit may be followed by it. */
  push(offered: OfferedRun): void {
    const { runId, fence, device, spec } = offered
    const { links, log, offerMs } = this.options
    this.watchOffer(offered)
    const sent = links.send(device, { type: 'run.offer', runId, fence, spec, expiresInMs: offerMs })
    log.info({ runId, fence, device }, 'run offered')
    if (!sent) this.work.add(() => this.withdraw(runId, fence))
  }

  /** The device answered the offer, or the run ended: its time limit is off. Gives what this replica knows of the offer. */
  settled(runId: string, fence: number): { taskId: string | null } | null {
    const key = `${runId}/${fence}`
    const offered = this.offers.get(key) ?? null
    offered?.cancel()
    this.offers.delete(key)
    return offered
  }

  /** Takes an offer back and looks for another device. */
  async withdraw(runId: string, fence: number): Promise<void> {
    this.settled(runId, fence)
    if (await withdrawOffer(this.options.root, runId, fence)) this.runQueued(runId)
  }

  /** Resolves when nothing that was asked for is still being done. */
  async idle(): Promise<void> {
    await this.work.idle()
  }

  private async dispatch(runId: string): Promise<void> {
    const { root, world, links, leaseMs } = this.options
    const offered = await root.transaction(async (tx): Promise<OfferedRun | null> => {
      const run = await findRun(tx, runId)
      if (!run || run.status !== 'queued' || run.leaseState !== 'none' || run.endedAt !== null) return null
      const now = world.now()
      const { facts, isHalted } = await lockPlacement(tx, run.workspaceId, { now, leaseMs })
      if (isHalted) {
        await cancelRun(tx, run, { exitReason: 'company_paused', reason: null, world, leaseMs })
        return null
      }
      const placement = placeRun(await loadRunFacts(tx, run), facts)
      if (placement.kind === 'gate' || !links.isLinked(placement.publicId)) return null
      const details = await findDetails(tx, runId)
      if (!details) return null
      const expiresAt = world.now() + this.options.offerMs
      if (!(await offerRun(tx, { runId, fence: run.fence, device: placement.publicId, expiresAt }))) return null
      const { taskId } = run
      return { runId, device: placement.publicId, fence: run.fence + 1, taskId, spec: details.spec }
    })
    if (offered) this.push(offered)
  }

  private watchOffer({ runId, fence, taskId }: OfferedRun): void {
    const key = `${runId}/${fence}`
    const cancel = this.options.world.after(this.options.offerMs, () => {
      this.offers.delete(key)
      this.options.log.warn({ runId, fence }, 'offer not answered in time')
      this.work.add(() => this.withdraw(runId, fence))
    })
    this.offers.set(key, { taskId, cancel })
  }

  /** The device's workspace, for callers that only know the device. */
  async deviceFreed(publicId: string): Promise<void> {
    const device = await findDeviceByPublicId(this.options.root, publicId)
    if (device) this.capacityChanged(device.workspaceId)
  }
}
