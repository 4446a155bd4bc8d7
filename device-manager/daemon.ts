import { mkdirSync } from 'node:fs'
import { hostname } from 'node:os'
import type { CloseName } from '../shared/device/limits.ts'
import { runLimits } from '../shared/device/limits.ts'
import { encodeFrame } from '../shared/device/frame.ts'
import type { ClaimState, ServerMessage } from '../shared/device/protocol.ts'
import type { DeviceIdentity } from '../shared/device/control.ts'
import type { World } from '../shared/lib/world.ts'
import type { DaemonConfig } from './config.ts'
import { replaceToken } from './identity-file.ts'
import { LinkClient } from './link/client.ts'
import { Forwarder } from './link/forwarder.ts'
import type { Log } from './log.ts'
import type { Places } from './places.ts'
import { adoptRuns } from './run/adoption.ts'
import { HostPool } from './run/host-pool.ts'
import { Journal } from './run/journal.ts'
import { Supervisor } from './run/supervisor.ts'
import { openSpool, type Spool } from './spool/spool.ts'
import { Surroundings } from './surroundings.ts'

export interface DaemonOptions {
  config: DaemonConfig
  places: Places
  world: World
  log: Log
  identity: DeviceIdentity
  token: string
  version: string
  /** The daemon must end: revoked, retired, or another one has its identity. */
  onFatal(reason: CloseName, text: string): void
}

/** Room in the spool below which the device takes no new run. */
const leastFreeBytes = 32 * 1024 * 1024
/** The device stops its harnesses this long before the control plane would give them up. */
const silentMarginMs = 5 * 60_000

/** The device manager's daemon: link, runs, spool and folders of one device. */
export class Daemon {
  readonly supervisor: Supervisor
  readonly spool: Spool
  readonly link: LinkClient
  readonly surroundings: Surroundings
  readonly startedAt: number
  private readonly options: DaemonOptions
  private readonly journal: Journal
  private readonly pool: HostPool
  private readonly forwarder: Forwarder
  private readonly instance: string
  private token: string
  private capacity = 3
  private displayName: string
  private remoteControlRevoked = false
  private draining = false
  private revoked = false
  private lastContact: { wall: number; monotonic: number }
  private cancelBeat: (() => void) | null = null
  private lastClaimState = ''

  constructor(options: DaemonOptions) {
    const { places, world, log, config } = options
    this.options = options
    this.token = options.token
    this.displayName = options.identity.displayName
    this.startedAt = world.now()
    this.instance = world.uuid()
    this.lastContact = { wall: world.now(), monotonic: world.monotonic() }
    mkdirSync(places.stateDir, { recursive: true, mode: 0o700 })
    this.spool = openSpool(places.spool, { maxPageCount: config.spoolPages, repair: true, world })
    if (this.spool.salvage) log.error({ salvage: this.spool.salvage }, 'the spool was damaged and salvaged')
    this.journal = new Journal(places.journal)
    this.pool = new HostPool({ places, world, log, spoolPages: config.spoolPages, unsentBytes: config.unsentBytes })
    this.surroundings = new Surroundings(options)
    this.link = this.createLink()
    this.forwarder = new Forwarder({ spool: this.spool, link: this.link, log })
    this.supervisor = this.createSupervisor()
  }

  async start(): Promise<void> {
    const { log } = this.options
    const { states, unreadable } = this.journal.load()
    if (unreadable.length > 0) log.error({ runs: unreadable }, 'journal rows could not be read')
    await adoptRuns({
      states,
      supervisor: this.supervisor,
      pool: this.pool,
      spool: this.spool,
      places: this.options.places,
      log,
    })
    void this.surroundings.probe()
    this.pool.warm()
    this.link.start()
    this.watch()
  }

  /** Heartbeats end last: what can still be sent is sent before the link is closed. Run hosts go on. */
  async stop(): Promise<void> {
    this.cancelBeat?.()
    await this.pool.stop()
    this.link.stop()
    this.journal.close()
    this.spool.close()
  }

  drain(on: boolean): void {
    this.draining = on
    this.reportClaimState()
  }

  /** Sends again all that is not acknowledged. */
  replay(runId: string | null): { runs: number; rows: number } {
    const runs = this.spool.runs().filter((run) => runId === null || run.runId === runId)
    for (const run of runs) this.forwarder.begin(run, run.ackedSeq)
    return { runs: runs.length, rows: runs.reduce((sum, run) => sum + run.rows, 0) }
  }

  configure(config: { displayName: string; capacity: number; remoteControlRevoked: boolean }): void {
    this.capacity = config.capacity
    this.displayName = config.displayName
    this.remoteControlRevoked = config.remoteControlRevoked
    this.reportClaimState()
  }

  get deviceToken(): string {
    return this.token
  }

  describe() {
    return {
      displayName: this.displayName,
      capacity: this.capacity,
      remoteControlRevoked: this.remoteControlRevoked,
      link: this.link.describe(),
      claimState: this.claimState(),
    }
  }

  claimState(): ClaimState {
    const activeRuns = this.supervisor.active().length
    const reason = this.refusal(activeRuns)
    return { accepting: reason === null, reason, message: null, activeRuns }
  }

  private refusal(activeRuns: number): ClaimState['reason'] {
    if (this.draining || this.revoked) return 'draining'
    let free: number | null
    try {
      free = this.spool.freeBytes()
    } catch {
      return 'spool_unavailable'
    }
    if (free !== null && free < this.leastFree()) return 'disk_full'
    return activeRuns >= this.capacity ? 'capacity' : null
  }

  /** A small spool (its size is a setting) keeps a quarter free instead. */
  private leastFree(): number {
    return Math.min(leastFreeBytes, (this.options.config.spoolPages * 16_384) / 4)
  }

  private createLink(): LinkClient {
    const { config, world, log, identity } = this.options
    return new LinkClient({
      ...config,
      url: linkUrl(identity.server),
      world,
      log,
      hello: () => ({
        type: 'hello',
        protocol: 1,
        token: this.token,
        publicId: identity.publicId,
        instance: this.instance,
        version: this.options.version,
        platform: process.platform,
        hostname: hostname().slice(0, 255),
        runs: this.supervisor.known(),
        claimState: this.claimState(),
      }),
      onWelcome: (welcome) => this.welcomed(welcome),
      onMessage: (message) => this.received(message),
      onDown: () => this.forwarder.reset(),
      onFatal: (reason, text) => this.fatal(reason, text),
    })
  }

  private createSupervisor(): Supervisor {
    const { places, world, log } = this.options
    return new Supervisor({
      places,
      world,
      log,
      spool: this.spool,
      journal: this.journal,
      pool: this.pool,
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
      forgotten: (runId) => this.forwarder.forget(runId),
      changed: () => this.reportClaimState(),
    })
  }

  private welcomed(welcome: ServerMessage & { type: 'welcome' }): void {
    const { log, places } = this.options
    log.info({ server: this.options.identity.server, runs: welcome.runs.length }, 'link up')
    this.heard()
    this.capacity = welcome.capacity
    this.displayName = welcome.displayName
    this.remoteControlRevoked = welcome.remoteControlRevoked
    if (welcome.newToken !== null) {
      replaceToken(places, welcome.newToken)
      this.token = welcome.newToken
      log.info({}, 'device token rotated')
    }
    for (const run of welcome.runs) {
      if (run.verdict === 'closed') this.supervisor.handle(run.runId, { type: 'closed' })
      else {
        if (run.verdict === 'give_up') this.supervisor.handle(run.runId, { type: 'given_up' })
        if (this.supervisor.find(run.runId)) this.forwarder.begin(run, run.ackSeq)
      }
    }
    this.lastClaimState = ''
    this.reportClaimState()
    this.beat(welcome.heartbeatMs)
    void this.reportReadiness(5 * 60_000)
  }

  private received(message: ServerMessage): void {
    this.heard()
    switch (message.type) {
      case 'run.offer':
        return this.offered(message)
      case 'run.start':
        return this.supervisor.start(message)
      case 'run.withdrawn':
        return this.ofRun(message, { type: 'withdrawn' })
      case 'run.cancel':
        return this.ofRun(message, {
          type: 'cancel_received',
          stop: { exitReason: message.exitReason, message: message.reason },
        })
      case 'run.input':
        return this.supervisor.input(message)
      case 'ack':
        return this.forwarder.acknowledged(message)
      case 'run.closed':
        return this.ofRun(message, { type: 'closed' })
      case 'run.refused':
        this.ofRun(message, { type: 'given_up' })
        return this.forwarder.refused(message)
      case 'change_set.get':
        return this.supervisor.changeSet(message)
      case 'folder.check':
        return void this.checkFolder(message).catch((error: unknown) => {
          this.options.log.warn({ err: error }, 'a folder could not be looked at')
        })
      case 'readiness.get':
        return void this.reportReadiness(0)
      case 'config.changed':
        return this.configure(message)
      case 'revoked':
        return this.fatal('revoked', message.reason)
      case 'welcome':
      case 'heartbeat.ack':
        return
    }
  }

  private ofRun(message: { runId: string; fence: number }, event: Parameters<Supervisor['handle']>[1]): void {
    if (this.supervisor.find(message.runId)?.fence === message.fence) this.supervisor.handle(message.runId, event)
  }

  private offered(message: ServerMessage & { type: 'run.offer' }): void {
    const { runId, fence, spec } = message
    const decline = (reason: 'capacity' | 'draining' | 'disk_full' | 'spool_unavailable' | 'already_running') => {
      this.link.send({ type: 'run.declined', runId, fence, reason, message: null })
      this.lastClaimState = ''
      this.reportClaimState()
    }
    const held = this.supervisor.find(runId)
    // Overtaken by a later offer of the same run.
    if (held && held.fence > fence) return
    if (held && held.fence === fence) return this.supervisor.handle(runId, { type: 'offered', spec, fence, at: 0 })
    if (held) {
      // An older lease of the same run: its tree must be gone before a new one may start.
      this.supervisor.handle(runId, { type: 'given_up' })
      if (this.supervisor.find(runId)) return decline('already_running')
    }
    const reason = this.refusal(this.supervisor.active().length)
    if (reason !== null && reason !== 'paused') return decline(reason)
    this.supervisor.offer({ spec, fence })
    this.forwarder.begin({ runId, fence }, 0)
  }

  private async checkFolder(message: ServerMessage & { type: 'folder.check' }): Promise<void> {
    const { checkFolder } = await import('./folders/check.ts')
    const result = await checkFolder(message.rootPath)
    this.link.send({ type: 'folder.result', requestId: message.requestId, result })
  }

  async reportReadiness(maxAgeMs: number): Promise<void> {
    const { world, log } = this.options
    try {
      const providerReadiness = await this.surroundings.readiness(maxAgeMs)
      this.link.send({ type: 'readiness', providerReadiness, capturedAt: world.now() })
    } catch (error) {
      log.warn({ err: error }, 'the harness programs could not be looked at')
    }
  }

  /** A change of whether runs are taken is told at once, not with the next heartbeat. */
  private reportClaimState(): void {
    const claimState = this.claimState()
    const key = `${claimState.accepting} ${claimState.reason}`
    if (key === this.lastClaimState) return
    if (this.link.send({ type: 'heartbeat', claimState })) this.lastClaimState = key
  }

  private beat(everyMs: number): void {
    const { world } = this.options
    this.cancelBeat?.()
    // ± 20 %, so that devices welcomed in one second do not beat in one second for ever.
    const ms = everyMs * (0.8 + 0.4 * world.random())
    this.cancelBeat = world.after(ms, () => {
      if (!this.link.isOpen()) return
      this.link.send({ type: 'heartbeat', claimState: this.claimState() })
      this.beat(everyMs)
    })
  }

  private heard(): void {
    const { world } = this.options
    this.lastContact = { wall: world.now(), monotonic: world.monotonic() }
  }

  /** Milliseconds since the control plane was heard; a machine that slept stops one of its clocks, so the larger counts. */
  private silence(): number {
    const { world } = this.options
    return Math.max(world.now() - this.lastContact.wall, world.monotonic() - this.lastContact.monotonic)
  }

  private watch(): void {
    this.options.world.after(15_000, () => {
      const silent = this.silence()
      for (const state of this.supervisor.active()) {
        const limit = state.spec.limits.silentMs ?? runLimits.silentMs
        if (this.link.isOpen() || silent < Math.max(limit - silentMarginMs, limit / 2)) continue
        const message = 'The control plane was out of reach for too long.'
        this.supervisor.handle(state.runId, { type: 'cancel_received', stop: { exitReason: 'runner_lost', message } })
      }
      this.forwarder.pumpAll()
      this.reportClaimState()
      this.watch()
    })
  }

  /** The device may no longer work: its harnesses are ended, what they wrote stays in the spool. */
  private fatal(reason: CloseName, text: string): void {
    if (this.revoked) return
    this.revoked = true
    const keep = reason === 'duplicate_device' || reason === 'protocol_unsupported'
    if (!keep) {
      for (const state of this.supervisor.active())
        this.supervisor.handle(state.runId, {
          type: 'cancel_received',
          stop: { exitReason: 'runner_lost', message: text },
        })
    }
    this.options.onFatal(reason, text)
  }
}

function linkUrl(server: string): string {
  const url = new URL(server)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/api/device/link`
  return url.toString()
}
