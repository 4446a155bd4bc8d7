import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import type { Knex } from 'knex'
import { changeSetResult, type ChangeSetResult } from '../../shared/device/change-set.ts'
import { linkLimits } from '../../shared/device/limits.ts'
import type { BinaryHeader, DeviceMessage } from '../../shared/device/protocol.ts'
import { reconnectSpread } from '../../shared/device/reconnect.ts'
import type { World } from '../../shared/lib/world.ts'
import { publish } from '../db/transaction.ts'
import type { Dispatcher } from '../run/offers/dispatcher.ts'
import type { RunStarter } from '../run/offers/run-starter.ts'
import { clientAddress } from '../http/headers.ts'
import type { Log } from '../process/log.ts'
import { Together } from '../process/together.ts'
import type { Metrics } from '../process/metrics.ts'
import type { RenewalDependencies } from '../resources/connections/renewal.ts'
import { findDevice, markUnlinked } from '../resources/devices/store.ts'
import type { Bus } from '../db/bus.ts'
import { settingsOf } from './device-settings.ts'
import { CredentialRequests } from './credentials.ts'
import { DeviceStates } from './device-states.ts'
import { admitDevices, authenticate, isIdle, type Admitted, type ToAdmit } from './hello.ts'
import { Heartbeats } from './heartbeats.ts'
import type { Ingest } from './ingest.ts'
import { listLiveOfDevice } from '../resources/runs/live-store.ts'
import { revokeLink, type Link, type LinkRegistry } from './registry.ts'
import type { DeviceRequests } from './requests.ts'
import { Session } from './session.ts'
import { recordSkills } from './skill-reports.ts'
import { Takeover } from './takeover.ts'
import { WaitingLinks, type WaitingLimits } from './waiting-links.ts'

export const linkPath = '/api/device/link'

export function isLinkRequest(request: IncomingMessage): boolean {
  return request.url?.split('?')[0] === linkPath
}

export interface LinkServerOptions {
  root: Knex
  world: World
  log: Log
  bus: Bus
  metrics: Metrics
  links: LinkRegistry
  ingest: Ingest
  dispatcher: Dispatcher
  starter: RunStarter
  requests: DeviceRequests
  /** Dependencies of the answers to devices that ask for the credentials of connections. */
  connections: RenewalDependencies
  replicaId: string
  heartbeatMs: number
  leaseMs: number
  trustedProxies: number
  /** Shorter durations for tests. */
  session?: { helloMs?: number; pingMs?: number; deadMs?: number }
  waiting?: WaitingLimits
}

/** Devices that are admitted at once: as long as a transaction of theirs lasts, others of the workspace wait. */
const mostAdmitted = 50

/**
 * Accepts devices' WebSockets, keeps the registry of links, and hands each message to the part that owns its subject.
 */
export class LinkServer {
  private readonly options: LinkServerOptions
  private readonly sockets = new WebSocketServer({
    noServer: true,
    maxPayload: linkLimits.frameBytes,
    // Compression is off: loopback and LAN are fast, and a compression bomb must not be inflated.
    perMessageDeflate: false,
  })
  private readonly bySession = new Map<Session, Link>()
  private readonly sessions = new Set<Session>()
  private readonly heartbeats: Heartbeats
  private readonly takeover: Takeover
  private readonly states: DeviceStates
  private readonly credentials: CredentialRequests
  private readonly unsubscribe: (() => void)[] = []
  private readonly waiting: WaitingLinks
  /** Of a workspace, those that have no runs. */
  private readonly admissions: Together<ToAdmit, Admitted | null>
  private draining = false

  constructor(options: LinkServerOptions) {
    this.options = options
    this.heartbeats = new Heartbeats(options)
    this.takeover = new Takeover(options)
    this.states = new DeviceStates(options)
    this.credentials = new CredentialRequests(options.connections)
    this.waiting = new WaitingLinks(options.waiting)
    this.admissions = new Together({
      most: mostAdmitted,
      all: (devices) => admitDevices(options.root, devices, options),
      onSplit: (error, count) => options.log.warn({ err: error, devices: count }, 'devices were not admitted together'),
    })
  }

  start(): void {
    this.heartbeats.start()
    this.takeover.start()
    this.unsubscribe.push(
      this.options.bus.on('device.changed', (row) => {
        const link = this.options.links.find(row.key)
        if (!link) return
        this.deviceChanged(link).catch((error: unknown) =>
          this.options.log.warn({ err: error, device: row.key }, 'a change of a device was not handed on'),
        )
      }),
    )
  }

  /**
   * Takes no new links, and within `ms` sends the devices elsewhere, one after another: balancers have the first half of the time
   * to notice that this replica is left, so that no device is led back to it.
   */
  leave(ms: number): void {
    this.draining = true
    const sessions = [...this.sessions]
    for (const [at, session] of sessions.entries())
      this.options.world.after((ms / 2) * (1 + at / sessions.length), () => session.close('going_away'))
  }

  /** Closes every link with a code that makes its device connect again elsewhere. */
  async stop(): Promise<void> {
    this.draining = true
    for (const off of this.unsubscribe.splice(0)) off()
    this.takeover.stop()
    for (const session of this.sessions) session.close('going_away')
    await this.heartbeats.stop()
    this.sockets.close()
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // The HTTP server no longer listens for the socket's errors, and an unheard error would end the process.
    socket.on('error', (error) => this.options.log.debug({ err: error }, 'the connection of a link failed'))
    const known = this.draining ? null : this.waiting.take(clientAddress(request, this.options.trustedProxies))
    if (known === null)
      return void socket.end('HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nConnection: close\r\n\r\n')
    // Covers every way to end: refused by the library, cut off, or closed.
    socket.once('close', known)
    this.sockets.handleUpgrade(request, socket, head, (ws) => {
      const session = new Session({
        socket: ws,
        wire: socket,
        world: this.options.world,
        log: this.options.log,
        ...this.options.session,
        onClose: (name) => this.options.metrics.linkCloses.inc({ reason: name }),
        handlers: {
          hello: (s, hello) => this.hello(s, hello).finally(known),
          message: (s, message) => this.message(s, message),
          accepted: (s, message) => this.accepted(s, message),
          ended: (s, message) => this.ended(s, message),
          frame: (s, header, body) => this.frame(s, header, body),
          closed: (s) => this.closed(s),
        },
      })
      this.sessions.add(session)
    })
  }

  private async hello(session: Session, hello: DeviceMessage & { type: 'hello' }): Promise<boolean> {
    const { root, world, links, log } = this.options
    const who = await authenticate(root, hello, world.now())
    if (!who.ok) {
      log.info({ publicId: hello.publicId, close: who.close }, 'device refused')
      this.options.metrics.signInsRefused.inc({ way: 'device', reason: who.close })
      session.close(who.close)
      return false
    }
    const { device } = who
    const before = await listLiveOfDevice(root, device.publicId)
    if (!(await this.takeover.mayConnect(device, hello.instance))) {
      log.warn({ device: device.publicId, hostname: hello.hostname }, 'a second daemon with this identity was refused')
      session.close('duplicate_device')
      return false
    }
    const linkId = world.uuid()
    const settings = await settingsOf(root, device, world.now())
    const admitted = await this.admit({ device, hello, before, linkId })
    if (!admitted) {
      session.close('revoked')
      return false
    }
    const link: Link = {
      deviceUuid: device.deviceUuid,
      publicId: device.publicId,
      workspaceId: device.workspaceId,
      linkId,
      instance: hello.instance,
      claimState: hello.claimState,
      beatAt: world.now(),
      spoolBytes: null,
      settings,
      ready: null,
      isOpen: () => session.isOpen,
      send: (message) => session.send(message),
      close: (name) => session.close(name),
      challenge: (ms) => session.challenge(ms),
    }
    const spread = { reconnectSpreadMs: reconnectSpread(links.size + 1) }
    const { folders, limits } = settings
    if (!session.send({ ...admitted.welcome, folders, limits, ...spread })) {
      // The device is gone before its welcome. Without this it would count as linked until its lease ends.
      await markUnlinked(root, { deviceUuid: device.deviceUuid, linkId })
      return false
    }
    this.bySession.set(session, link)
    links.add(link)
    log.info({ device: device.publicId, hostname: hello.hostname, runs: hello.runs.length }, 'device connected')
    const { outcome } = admitted
    for (const { id: runId, fence } of outcome.claim)
      this.options.dispatcher.settled({ runId, fence, device: link.publicId })
    for (const run of outcome.start) await this.options.starter.start(link, run)
    for (const run of outcome.cancel) this.options.starter.cancel(link, run)
    this.options.dispatcher.capacityChanged(device.workspaceId)
    // A change made during the hello found no link to send it to.
    await this.deviceChanged(link)
    return true
  }

  /** Devices come together when their server or their network returns. One with runs waits for no other: theirs are decided meanwhile. */
  private async admit(device: ToAdmit): Promise<Admitted | null> {
    if (isIdle(device)) return this.admissions.add(device.device.workspaceId, device)
    const [admitted] = await admitDevices(this.options.root, [device], this.options)
    return admitted ?? null
  }

  private message(
    session: Session,
    message: Exclude<DeviceMessage, { type: 'run.ended' | 'run.accepted' }>,
  ): Promise<void> | void {
    const link = this.bySession.get(session)
    if (!link || message.type === 'hello') return
    switch (message.type) {
      case 'heartbeat':
        this.options.metrics.heartbeats.inc()
        this.heartbeats.beat(link)
        link.spoolBytes = message.spoolBytes ?? link.spoolBytes
        link.send({
          type: 'heartbeat.ack',
          serverTime: this.options.world.now(),
          reconnectSpreadMs: reconnectSpread(this.options.links.size),
        })
        return this.states.claimState(link, message.claimState)
      case 'readiness':
        return this.states.readiness(link, message)
      case 'run.declined':
        return this.states.declined(link, message)
      case 'run.started':
        return this.states.started(link, message)
      case 'run.wall':
        return this.states.wall(link, message)
      case 'run.skills': {
        const { root, world, leaseMs } = this.options
        return recordSkills(root, link, { ...message, moment: { now: world.now(), leaseMs } })
      }
      case 'credential.get':
        return this.credentials.receive(link, message)
      case 'folder.result':
        return this.options.requests.answered(link.publicId, message.requestId, message.result)
    }
  }

  private async accepted(session: Session, message: DeviceMessage & { type: 'run.accepted' }): Promise<void> {
    const link = this.bySession.get(session)
    if (!link) return
    const offered = this.options.dispatcher.settled({ ...message, device: link.publicId })
    await this.options.starter.claim(link, { ...message, isLone: offered?.taskId === null })
  }

  private async ended(session: Session, message: DeviceMessage & { type: 'run.ended' }): Promise<void> {
    const link = this.bySession.get(session)
    if (link) await this.options.ingest.push({ kind: 'ended', ...message, ...this.from(session, link) })
  }

  private async frame(session: Session, header: BinaryHeader, body: Buffer): Promise<void> {
    const link = this.bySession.get(session)
    if (!link) return
    if (header.type === 'run.events')
      return this.options.ingest.push({ kind: 'events', header, body, ...this.from(session, link) })
    // A body that nobody asked for is not even parsed: a device that lies could have any size of it read.
    if (header.requestId !== null && !this.options.requests.isAsked(link.publicId, header.requestId)) return
    const result = parseChangeSet(body)
    if (!result) return session.close('malformed_frame')
    if (header.requestId !== null) {
      this.options.requests.answered(link.publicId, header.requestId, result).catch((error: unknown) => {
        this.options.log.warn({ err: error }, 'a change-set could not be handed on')
      })
      return
    }
    const { runId, fence } = header
    return this.options.ingest.push({ kind: 'change_set', runId, fence, result, ...this.from(session, link) })
  }

  /** Tells the daemon at once that its settings changed or the device was removed. */
  private async deviceChanged(link: Link): Promise<void> {
    const device = await findDevice(this.options.root, link.deviceUuid)
    if (!device) return revokeLink(link)
    // Runs go to the link that the row names. With two links of one daemon the row may name the dead one, so the daemon
    // must say hello again.
    if (device.linkId !== link.linkId || device.replicaId !== this.options.replicaId) return link.close('going_away')
    const settings = await settingsOf(this.options.root, device, this.options.world.now())
    if (JSON.stringify(settings) === JSON.stringify(link.settings)) return
    link.settings = settings
    link.send({ type: 'config.changed', ...settings })
  }

  private from(session: Session, link: Link) {
    return {
      device: link.publicId,
      workspaceId: link.workspaceId,
      send: (message: Parameters<Link['send']>[0]) => void link.send(message),
      giveUp: () => session.close('going_away'),
    }
  }

  private closed(session: Session): void {
    this.sessions.delete(session)
    const link = this.bySession.get(session)
    if (!link) return
    this.bySession.delete(session)
    if (!this.options.links.remove(link)) return
    const { root, world, log } = this.options
    log.info({ device: link.publicId }, 'device disconnected')
    const unlink = async () => {
      await markUnlinked(root, link)
      const at = world.now()
      await publish(root, { topic: 'device.changed', key: link.publicId, payload: { unlinkedAt: at }, at })
    }
    this.heartbeats.after(unlink)
  }
}

function parseChangeSet(body: Buffer): ChangeSetResult | null {
  try {
    const parsed = changeSetResult.safeParse(JSON.parse(body.toString('utf8')))
    return parsed.success ? parsed.data : null
  } catch {
    return null
  }
}
