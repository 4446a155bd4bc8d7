import { EventEmitter } from 'node:events'
import { existsSync, mkdirSync } from 'node:fs'
import { hostname } from 'node:os'
import type { CloseName } from '../../shared/device/limits.ts'
import type { RunId } from '../../shared/lib/ids.ts'
import { Services } from '../../shared/lib/services.ts'
import { encodeFrame } from '../../shared/device/frame.ts'
import type { ClaimState, ServerMessage } from '../../shared/device/protocol.ts'
import { ClaimReports, claimStateOf } from './claim-state.ts'
import { DeviceName, DeviceToken } from './device-token.ts'
import type { DaemonOptions } from './daemon-options.ts'
import { Drain } from './drain.ts'
import { harnessesMs, machineParts } from './machine-parts.ts'
import type { MachineWatch } from './machine-watch.ts'
import { endSilentRuns } from './silence.ts'
import type { ReadinessReports } from './readiness-reports.ts'
import { LinkClient, Contact, type LinkListener } from '../link/client.ts'
import { Forwarder } from '../link/forwarder.ts'
import { linkUrl } from '../link/link-url.ts'
import { adoptRuns } from '../run/adoption.ts'
import { HostPool } from '../run/hosts/host-pool.ts'
import { LockWatch } from '../run/hosts/lock-watch.ts'
import { bringSkills, wantedBundles } from '../run/bring-skills.ts'
import { Journal } from '../run/journal.ts'
import { expectedRows, type RunState } from '../run/machine.ts'
import { Supervisor } from '../run/supervisor.ts'
import { receiveMessage, type DeviceSettings, type MessageContext } from './server-messages.ts'
import { BundleCache } from '../skills/bundle-cache.ts'
import { StandingSpool } from '../spool/standing-spool.ts'
import type { Surroundings } from './surroundings.ts'
import type { Isolation } from '../isolation/isolation.ts'

/** The time for which a daemon that starts waits, before it opens its link, for all hosts of the daemon before. */
const adoptMs = 500

/** How often what waits is looked at: runs of a silent link, frames that were not sent, the claim state. */
const lookMs = 15_000

/** What parts tell of that is the matter of others, which are made after them. */
interface DaemonEvents {
  caughtUp: [readonly RunId[]]
  spoolOpenedAnew: []
  runsChanged: []
  drainChanged: []
}

/**
 * The device manager's daemon: link, runs, spool and folders of one device. A part uses those that are made before it; what it has to
 * tell the others are events. Nothing runs before `standBy` or `start`.
 */
export class Daemon {
  readonly supervisor: Supervisor
  readonly spool: StandingSpool
  readonly link: LinkClient
  readonly surroundings: Surroundings
  readonly isolation: Isolation
  readonly readiness: ReadinessReports
  readonly machine: MachineWatch
  readonly drain: Drain
  readonly startedAt: number
  private readonly options: DaemonOptions
  private readonly events = new EventEmitter<DaemonEvents>()
  private readonly journal: Journal
  /** Those of the journal, until the supervisor has them. */
  private runs: () => readonly RunState[]
  private readonly pool: HostPool
  private readonly bundles: BundleCache
  private readonly forwarder: Forwarder
  private readonly instance: string
  readonly token: DeviceToken
  private capacity = 3
  private limits: NonNullable<DeviceSettings['limits']> = []
  private readonly displayName: DeviceName
  private remoteControlRevoked = false
  private revoked = false
  private isRefused = false
  private hasStoodBy = false
  private readonly contact: Contact
  private readonly messages: MessageContext
  private readonly claimReports: ClaimReports
  private readonly services: Services

  constructor(options: DaemonOptions) {
    const { events } = this
    const { places, world, log, config, identity } = options
    this.options = options
    this.startedAt = world.now()
    this.instance = world.uuid()
    this.token = new DeviceToken(options.token, options)
    this.displayName = new DeviceName(options)
    this.contact = new Contact(world)
    this.drain = new Drain(world, () => events.emit('drainChanged'))
    mkdirSync(places.stateDir, { recursive: true, mode: 0o700 })
    const isFirst = !existsSync(places.journal)
    this.journal = new Journal({ ...options, path: places.journal, onCaughtUp: (ids) => events.emit('caughtUp', ids) })
    const { states, unreadable } = this.journal.load()
    if (unreadable.length > 0) log.error({ runs: unreadable }, 'journal rows could not be read')
    this.runs = () => states
    this.spool = new StandingSpool({
      path: places.spool,
      world,
      settings: { maxPageCount: config.spoolPages },
      isFirst,
      expected: () => expectedRows(this.runs()),
      onOpenedAnew: (why, salvage) => {
        log.error({ why, salvage }, 'the spool was opened anew')
        world.after(0, () => events.emit('spoolOpenedAnew'))
      },
    })
    if (this.spool.salvage) log.error({ salvage: this.spool.salvage }, 'the spool was damaged and salvaged')
    this.link = new LinkClient({ ...config, url: linkUrl(identity.server), world, log })
    const send: LinkClient['send'] = (message) => this.link.send(message)
    const { isolation, surroundings, readiness, machine } = machineParts(options, send)
    this.isolation = isolation
    this.surroundings = surroundings
    this.readiness = readiness
    this.machine = machine
    const { spoolPages, unsentBytes, hostSilentMs: silentMs } = config
    const [wall, room] = [() => surroundings.wall(), () => this.capacity - this.supervisor.active().length]
    this.pool = new HostPool({ ...options, spoolPages, unsentBytes, silentMs, wall, room })
    const ofRuns = { token: () => this.token.value, wanted: () => wantedBundles(this.runs()) }
    this.bundles = new BundleCache({ ...options, ...identity, ...ofRuns, folder: places.skills })
    this.forwarder = new Forwarder({ spool: this.spool, link: this.link, log })
    this.supervisor = this.createSupervisor()
    const { spool } = this
    this.claimReports = new ClaimReports({ world, spool, claimState: () => this.claimState(), send })
    const lockWatch = new LockWatch({
      ...options,
      everyMs: silentMs / 12,
      spool: this.spool,
      records: this.pool.records,
      isBusy: () => this.supervisor.list().length > 0,
      check: (record, isWanted) => void this.supervisor.hosts.check(record, isWanted),
    })
    this.messages = {
      supervisor: this.supervisor,
      forwarder: this.forwarder,
      link: this.link,
      log,
      claimState: () => this.claimState(),
      journalTrouble: () => this.journal.trouble(),
      tellClaimState: () => this.claimReports.tell(),
      probeHarnesses: () => this.readiness.probeAgain({ askShell: true }),
      configure: (settings) => this.configure(settings),
      revoked: (reason) => this.fatal('revoked', reason),
    }
    // Heartbeats stop first and the link last of all that uses it: what can still be sent is sent before it is closed.
    this.services = new Services([
      { stop: () => this.spool.close() },
      { stop: () => this.journal.close() },
      { start: () => this.link.start(this.listener()), stop: () => this.link.stop() },
      this.pool,
      this.machine,
      this.bundles,
      this.claimReports,
      lockWatch,
      {
        start: () => this.contact.keepLooking(lookMs, (silentMs) => this.watch(silentMs)),
        stop: () => this.contact.stop(),
      },
    ])
    this.listen()
  }

  private listen(): void {
    const { events, supervisor, claimReports } = this
    events.on('caughtUp', (runIds) => supervisor.caughtUp(runIds))
    events.on('spoolOpenedAnew', () => supervisor.ensureEndings())
    events.on('drainChanged', () => claimReports.report())
    events.on('runsChanged', () => {
      claimReports.report()
      // With no run left, the next refusal ends the daemon.
      if (this.isRefused && supervisor.active().length === 0) this.link.hurry()
    })
  }

  /** Does all that a run would wait for, before the daemon knows its token. */
  async standBy(): Promise<void> {
    this.hasStoodBy = true
    await this.prepare()
    await this.surroundings.readiness(harnessesMs).catch(() => undefined)
    this.pool.warm()
  }

  async start(): Promise<void> {
    if (!this.hasStoodBy) {
      await this.prepare()
      void this.surroundings.probe()
      if (this.options.earlyHost !== undefined) this.pool.warm()
    }
    await this.services.start()
  }

  private async prepare(): Promise<void> {
    const { world } = this.options
    const states = this.runs()
    if (states.length > 0 || this.spool.runs().length > 0) this.options.onWork()
    const { supervisor, pool, spool } = this
    const adopted = adoptRuns({ ...this.options, states, supervisor, pool, spool })
    this.runs = () => supervisor.list()
    // Hello tells what hosts say that answer at once. The others are waited for beside the link.
    await Promise.race([adopted, world.sleep(adoptMs)])
    this.isolation.start()
  }

  /** Run hosts go on. */
  async stop(): Promise<void> {
    await this.services.stop()
  }

  /** Sends again all that is not acknowledged. */
  replay(runId: string | null): { runs: number; rows: number } {
    const runs = this.spool.runs().filter((run) => runId === null || run.runId === runId)
    for (const run of runs) this.forwarder.begin(run, run.ackedSeq)
    return { runs: runs.length, rows: runs.reduce((sum, run) => sum + run.rows, 0) }
  }

  configure(config: DeviceSettings): void {
    this.capacity = config.capacity
    this.displayName.replace(config.displayName)
    this.remoteControlRevoked = config.remoteControlRevoked
    if (config.folders !== undefined) this.machine.folders.set(config.folders)
    this.limits = config.limits ?? []
    this.claimReports.report()
  }

  describe() {
    return {
      displayName: this.displayName.value,
      capacity: this.capacity,
      limits: this.limits.filter(({ resetsAt }) => resetsAt > this.options.world.now()),
      remoteControlRevoked: this.remoteControlRevoked,
      link: this.link.describe(),
      claimState: this.claimState(),
    }
  }

  claimState(): ClaimState {
    return claimStateOf({
      isDraining: this.drain.isOn || this.revoked,
      activeRuns: this.supervisor.active().length,
      capacity: this.capacity,
      spool: this.spool,
      journal: this.journal,
      spoolPages: this.options.config.spoolPages,
    })
  }

  private listener(): LinkListener {
    const { options, instance } = this
    return {
      holdsRuns: () => this.supervisor.known().some(({ state }) => state !== 'accepted'),
      hasLiveRuns: () => this.supervisor.active().length > 0,
      hello: () => ({
        type: 'hello',
        protocol: 1,
        token: this.token.value,
        publicId: options.identity.publicId,
        instance,
        version: options.version,
        platform: process.platform,
        hostname: hostname().slice(0, 255),
        runs: this.supervisor.known(),
        claimState: this.claimState(),
      }),
      onWelcome: (welcome) => this.welcomed(welcome),
      onMessage: (message) => this.received(message),
      onDown: () => this.forwarder.reset(),
      onRefused: (reason, text) => this.refused({ reason, text }),
      onFatal: (reason, text) => this.fatal(reason, text),
    }
  }

  private createSupervisor(): Supervisor {
    return new Supervisor({
      ...this.options,
      spool: this.spool,
      journal: this.journal,
      pool: this.pool,
      bringSkills: (state) => bringSkills(this.bundles, state, (message) => this.link.send(message)),
      surroundings: this.surroundings,
      server: this.options.identity.server,
      send: (message) => this.link.send(message),
      sendChangeSet: ({ runId, fence, requestId }, result) => {
        const body = new TextEncoder().encode(JSON.stringify(result))
        this.link.sendBinary(encodeFrame({ type: 'change_set', runId, fence, requestId }, body))
      },
      forward: (run) => {
        if (this.forwarder.isSending(run.runId)) this.forwarder.pump(run.runId)
      },
      forgotten: (runId) => {
        this.forwarder.forget(runId)
        this.options.onForgotten?.()
      },
      spoolDamaged: (message) => this.spool.distrust(message),
      spoolGone: () => this.spool.check(),
      changed: () => void this.events.emit('runsChanged'),
    })
  }

  private refused(refusal: { reason: CloseName; text: string } | null): void {
    this.isRefused = refusal !== null
    this.options.onRefused(refusal)
  }

  private welcomed(welcome: ServerMessage & { type: 'welcome' }): void {
    const { log } = this.options
    log.info({ server: this.options.identity.server, runs: welcome.runs.length }, 'link up')
    this.contact.heard()
    this.refused(null)
    this.configure(welcome)
    if (welcome.newToken !== null) this.token.replace(welcome.newToken)
    for (const run of welcome.runs) {
      if (run.verdict === 'closed') this.supervisor.handle(run.runId, { type: 'closed' })
      else {
        if (run.verdict === 'give_up') this.supervisor.handle(run.runId, { type: 'given_up' })
        if (this.supervisor.find(run.runId)) this.forwarder.begin(run, run.ackSeq)
      }
    }
    this.claimReports.tell()
    this.contact.keepBeating(welcome.heartbeatMs, () => this.claimReports.beat())
    void this.readiness.report(harnessesMs)
    // Not before: a machine that is offline gets no runs, and one that starts has other work for its processors.
    this.pool.warmLater()
  }

  private received(message: ServerMessage): void {
    this.contact.heard()
    if (message.type === 'run.offer') this.options.onWork()
    receiveMessage(this.messages, message)
  }

  private watch(silentMs: number): void {
    if (!this.link.isOpen()) endSilentRuns(this.supervisor, silentMs)
    this.forwarder.pumpAll()
    this.claimReports.report()
  }

  /** The device may no longer work: its harnesses are ended, what they wrote stays in the spool. */
  private fatal(reason: CloseName, text: string): void {
    if (this.revoked) return
    this.revoked = true
    const keep = reason === 'duplicate_device' || reason === 'protocol_unsupported'
    const stop = { exitReason: 'runner_lost' as const, message: text }
    for (const { runId } of keep ? [] : this.supervisor.active())
      this.supervisor.handle(runId, { type: 'cancel_received', stop })
    this.options.onFatal(reason, text)
  }
}
