import type { DeviceUuid, WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../process/log.ts'
import { recordHeartbeats } from '../resources/devices/store.ts'
import type { Link } from './registry.ts'

interface Options {
  root: Knex
  world: World
  log: Log
  heartbeatMs: number
  leaseMs: number
  /** Offers what waits in a workspace. */
  dispatcher: { capacityChanged(workspaceId: WorkspaceUuid): void }
}

/** Collects heartbeats in memory and writes those of one second in one statement, however many devices there are. */
export class Heartbeats {
  private readonly options: Options
  private beats = new Map<DeviceUuid, number>()
  private cancel: (() => void) | null = null
  private work: Promise<void> = Promise.resolve()
  private stopped = true

  constructor(options: Options) {
    this.options = options
  }

  start(): void {
    this.stopped = false
  }

  async stop(): Promise<void> {
    this.stopped = true
    this.writeNow()
    await this.work
  }

  /**
   * Notes a heartbeat. The first one after a missed one is written at once. A link outlives the lease of its device when the
   * machine of the server slept, since sockets stay open then; what waits for the device is offered with this heartbeat.
   */
  beat(link: Link): void {
    const { world, heartbeatMs, leaseMs, dispatcher } = this.options
    const now = world.now()
    const silentMs = now - link.beatAt
    link.beatAt = now
    this.beats.set(link.deviceUuid, now)
    if (silentMs > Math.min(2 * heartbeatMs, leaseMs)) this.writeNow()
    else if (!this.stopped) this.cancel ??= world.after(1_000, () => this.writeNow())
    if (silentMs > leaseMs) this.after(async () => dispatcher.capacityChanged(link.workspaceId))
  }

  /** Runs a write in order with the heartbeats. */
  after(task: () => Promise<void>): void {
    this.work = this.work.then(task).catch((error: unknown) => {
      this.options.log.warn({ err: error }, 'the state of a link was not written')
    })
  }

  private writeNow(): void {
    this.cancel?.()
    this.cancel = null
    if (this.beats.size === 0) return
    const latest = Math.max(...this.beats.values())
    // All beats get the same time: they are at most a second apart, and a lease is ninety.
    const beats = [...this.beats.keys()].map((deviceUuid) => ({ deviceUuid, at: latest }))
    this.beats = new Map()
    this.after(() => recordHeartbeats(this.options.root, beats))
  }
}
