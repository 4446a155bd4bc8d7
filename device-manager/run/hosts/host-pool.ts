import { isDeepStrictEqual } from 'node:util'
import type { World } from '../../../shared/lib/world.ts'
import type { Log } from '../../log/log.ts'
import type { Places } from '../../setup/places.ts'
import { startTimeOf } from '../../process/identity.ts'
import { whenIdle } from '../../process/idle-processors.ts'
import type { LikelySkills } from '../../run-host/launch/skills-ahead.ts'
import type { HostPurpose } from '../../run-host/wire/node-flags.ts'
import type { HostRecord, HostRequest } from '../../run-host/wire/protocol.ts'
import { hostPaths, removeHostFiles } from '../../run-host/wire/record.ts'
import { HostConnection } from './host-connection.ts'
import { HostDemand, usableMemory } from './host-demand.ts'
import { startHost, type HostProcess, type StartedHost, type StartHost } from './host-process.ts'
import type { WallSpec } from '../../wall/spec.ts'
import { HostRecords } from './host-records.ts'

export interface HostPoolOptions {
  places: Places
  world: World
  log: Log
  spoolPages: number
  unsentBytes: number
  /** A run host that lives is given up when it does not answer for so long while something waits for it. */
  silentMs: number
  /** It was started before there was this pool, and is the first that this pool is asked for. */
  earlyHost?: StartedHost
  /** Starts a host; default: a process of its own. */
  startHost?: StartHost
  /** The wall that a run would be given now; null: none. Fails when one should be there and cannot be made. */
  wall(): WallSpec | null | Promise<WallSpec | null>
  /** The places for runs that are left. */
  room(): number
}

/** A host without a run, from its start on. `host`: once it is connected. */
interface Spare {
  starting: Promise<HostConnection>
  host: HostConnection | null
}

/** The time from a harness's launch, or from the link of a daemon that starts, until the next run host is started: that takes most of a processor for a second. */
const warmAfterMs = { few: 2_500, many: 50 }
/** The number of sets that are copied ahead. Agents with other skills wait for their copies. */
const likelySets = 3
const startMs = 15_000
const connectMs = 5_000
const dismissMs = 2_000

/** Starts run hosts, keeps as many ready beside those at work as runs come together, and finds those that an earlier daemon started. */
export class HostPool {
  readonly records: HostRecords
  private readonly options: HostPoolOptions
  /** This daemon, as hosts know whose they are. */
  private readonly own = { pid: process.pid, startTime: startTimeOf(process.pid) ?? '' }
  private readonly demand = new HostDemand({ memory: usableMemory() })
  /** Hosts that stand by or will, the oldest first. */
  private spares: Spare[] = []
  /** Processes that are not connected yet, by the id of their host. */
  private readonly starting = new Map<string, HostProcess>()
  private likely: Omit<Extract<HostRequest, { type: 'skills.ahead' }>, 'type'> | null = null
  private stopped = false
  private early: StartedHost | null
  private cancelWarming = (): void => {}
  private cancelLooking = (): void => {}

  constructor(options: HostPoolOptions) {
    this.options = options
    this.early = options.earlyHost ?? null
    this.records = new HostRecords(options.places)
  }

  get silentMs(): number {
    return this.options.silentMs
  }

  get isStopped(): boolean {
    return this.stopped
  }

  /** How many hosts can be taken without waiting. */
  get standing(): number {
    return this.spares.filter(({ host }) => host?.isOpen).length
  }

  /** Whether a host that lives is none of an earlier daemon's. */
  isEarly(hostId: string): boolean {
    return this.early?.hostId === hostId
  }

  /** Starts the hosts that should stand by, one after another, so that the next runs do not wait for a Node to start. */
  warm(): void {
    this.dropLost()
    const isStarting = this.spares.some(({ host }) => host === null)
    if (this.stopped || isStarting || this.spares.length >= this.wanted()) return
    const spare: Spare = { starting: this.startHost('spare'), host: null }
    this.spares.push(spare)
    spare.starting.then(
      (host) => {
        if (!this.spares.includes(spare)) return
        spare.host = host
        this.options.log.debug({ hostId: host.hostId, standing: this.standing }, 'a run host stands by')
        void this.standBy(host)
        this.warm()
      },
      (error: unknown) => {
        if (!this.stopped) this.options.log.error({ err: error }, 'a run host could not be started')
        this.spares = this.spares.filter((each) => each !== spare)
      },
    )
  }

  /** Starts them when what starts now, the daemon or a harness, has had time to do so. A run that comes before starts its own. */
  warmLater(): void {
    this.cancelWarming()
    this.cancelWarming = whenIdle(this.options.world, warmAfterMs, () => this.warm())
  }

  /** Notes the skills of a run, since runs that come may have the same. */
  noteSkills(bundles: string, set: LikelySkills): void {
    const isOther = ({ harness, skills }: LikelySkills) =>
      harness !== set.harness || !isDeepStrictEqual(skills, set.skills)
    this.likely = { bundles, sets: [set, ...(this.likely?.sets ?? []).filter(isOther)].slice(0, likelySets) }
  }

  /** Has a host make the wall of the run to come, and copies of skills. What is wrong with it, a run will tell. */
  private async standBy(host: HostConnection): Promise<void> {
    if (this.likely !== null) host.send({ type: 'skills.ahead', ...this.likely })
    const wall = await Promise.resolve()
      .then(() => this.options.wall())
      .catch(() => null)
    if (wall !== null && this.spares.some((spare) => spare.host === host)) host.send({ type: 'stand_by', wall })
  }

  /** Takes a host if one can be had without waiting. */
  takeReady(): HostConnection | null {
    this.demand.note(this.options.world.monotonic())
    this.lookLater()
    return this.readyOne()
  }

  /** Takes a host for a run that was offered none. */
  async take(): Promise<HostConnection> {
    this.cancelWarming()
    const ready = this.readyOne()
    if (ready) return ready
    const spare = this.spares.shift()
    const host = await spare?.starting.catch(() => null)
    return host?.isOpen ? host : this.startHost('run')
  }

  private readyOne(): HostConnection | null {
    this.dropLost()
    const spare = this.spares.find(({ host }) => host !== null)
    if (spare === undefined) return null
    this.cancelWarming()
    this.spares = this.spares.filter((each) => each !== spare)
    return spare.host
  }

  /** Forgets hosts that ended while they stood by. */
  private dropLost(): void {
    this.spares = this.spares.filter(({ host }) => host?.isOpen !== false)
  }

  private wanted(): number {
    return this.demand.wanted(this.options.world.monotonic(), { room: this.options.room() })
  }

  /** Has hosts leave when fewer are wanted than stand by. */
  private lookLater(): void {
    const { world } = this.options
    this.cancelLooking()
    const ms = this.demand.changesIn(world.monotonic())
    if (ms === null) return
    this.cancelLooking = world.after(ms, () => {
      if (this.stopped) return
      const ready = this.spares.filter(({ host }) => host !== null)
      for (const { host } of ready.slice(0, Math.max(0, this.spares.length - this.wanted()))) {
        this.spares = this.spares.filter((each) => each.host !== host)
        host?.send({ type: 'discard' })
      }
      this.lookLater()
    })
  }

  /** Has hosts that have no run leave, and ends those that are still starting, since nobody would hear of them. */
  async stop(): Promise<void> {
    this.stopped = true
    this.cancelLooking()
    const ready = this.spares.flatMap(({ host }) => host ?? [])
    this.spares = []
    await Promise.all([
      ...ready.map((host) => this.dismiss(host)),
      ...[...this.starting].map((each) => this.end(...each)),
    ])
  }

  /** Connects to a host. Rejects with HostRefusedError when another daemon has it. */
  connect(record: HostRecord, timeoutMs = connectMs): Promise<HostConnection> {
    return HostConnection.open(record, this.own, Math.min(timeoutMs, connectMs))
  }

  /** Sees the host leave: what a daemon says as the last thing before its exit may not be read any more. */
  private async dismiss(host: HostConnection): Promise<void> {
    const gone = new Promise<void>((resolve) => host.attach({ reply: () => undefined, lost: resolve }))
    host.send({ type: 'discard' })
    await Promise.race([gone, this.options.world.sleep(dismissMs)])
  }

  private async end(hostId: string, child: HostProcess): Promise<void> {
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    child.ref()
    if (child.exitCode === null && child.signalCode === null && child.kill('SIGKILL')) await gone
    removeHostFiles(hostPaths(this.options.places.stateDir, hostId))
  }

  private async startHost(purpose: HostPurpose): Promise<HostConnection> {
    if (this.stopped) throw new Error('the device manager ends')
    const start = this.options.startHost ?? startHost
    const host = this.early ?? start(this.options.world.id('h'), { ...this.options, purpose })
    this.early = null
    const { hostId } = host
    const child = await host.child
    this.starting.set(hostId, child)
    try {
      if (this.stopped) await this.end(hostId, child)
      return await this.connectWhenReady(hostId, () => child.exitCode !== null || child.signalCode !== null)
    } finally {
      this.starting.delete(hostId)
    }
  }

  private async connectWhenReady(hostId: string, hasExited: () => boolean): Promise<HostConnection> {
    const { world, places } = this.options
    const deadline = world.monotonic() + startMs
    for (;;) {
      const record = this.records.find(hostId)
      const connection = record && (await this.connect(record).catch(() => null))
      if (connection) return connection
      if (hasExited()) throw new Error(`the run host ended at its start; see ${places.hostLog}`)
      if (world.monotonic() > deadline) throw new Error('the run host did not start in time')
      await world.sleep(10)
    }
  }
}
