import { certificateTrouble } from '../../shared/lib/certificate-trouble.ts'
import { WebSocket, type RawData } from 'ws'
import { parseJsonText } from '../../shared/lib/lines.ts'
import { type CloseName, linkLimits, silenceLimitMs } from '../../shared/device/limits.ts'
import { serverMessage, type DeviceMessage, type ServerMessage } from '../../shared/device/protocol.ts'
import { ClockWatch } from '../../shared/lib/clock-watch.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../log/log.ts'
import { sinceBoot, type SinceBoot } from '../process/boot-clock.ts'
import { delayWithRunsMs, linkStep, startState, type LinkEffect, type LinkEvent, type LinkState } from './machine.ts'

interface LinkSettings {
  url: string
  world: World
  log: Log
  reconnectMinMs: number
  reconnectMaxMs: number
  pingMs: number
  deadMs: number
}

/** What a link asks, and what it tells, from its start on. */
export interface LinkListener {
  /** Says whether there is something to tell: runs at work, or whose ending the server has not taken. */
  holdsRuns(): boolean
  /** Says whether a harness is at work. */
  hasLiveRuns(): boolean
  hello(): DeviceMessage & { type: 'hello' }
  onWelcome(welcome: ServerMessage & { type: 'welcome' }): void
  onMessage(message: ServerMessage): void
  onDown(): void
  /** The server does not know the token, and live runs go on. It is asked again. */
  onRefused(reason: CloseName, text: string): void
  onFatal(reason: CloseName, text: string): void
}

/** No way to the server, or no answer on it: nothing that other devices need see as well. */
const silentErrors = /^(ETIMEDOUT|E(NET|HOST)(UNREACH|DOWN)|EAI_AGAIN|ENOTFOUND|Opening handshake has timed out)$/

/** Keeps one WebSocket to the control plane up, by the link machine. */
export class LinkClient {
  private readonly options: LinkSettings
  /** null: it was not started. */
  private listener: LinkListener | null = null
  private state: LinkState = startState
  private socket: WebSocket | null = null
  private lastHeardAt = 0
  private retryAfterMs: number | null = null
  /** The time over which a return is spread, as the server said last. */
  private spreadMs = 0
  /** This end gave the socket up, or nothing was there that could have answered. */
  private isSilent = false
  private cancelWait: (() => void) | null = null
  private cancelPing: (() => void) | null = null
  private readonly clock: ClockWatch
  private since: number
  private lastError: string | null = null

  constructor(options: LinkSettings) {
    this.options = options
    this.since = options.world.now()
    this.clock = new ClockWatch({ world: options.world, jumpMs: 10_000, onJump: (ms) => this.woke(ms) })
  }

  start(listener: LinkListener): void {
    this.listener = listener
    this.apply({ type: 'start' })
    this.clock.start(5_000)
  }

  stop(): void {
    this.clock.stop()
    this.apply({ type: 'stop' })
  }

  /** State as `svc device status` shows it. */
  describe(): { state: 'connected' | 'connecting' | 'stopped'; since: number; lastError: string | null } {
    const state = this.isOpen() ? 'connected' : this.state.phase === 'stopped' ? 'stopped' : 'connecting'
    return { state, since: this.since, lastError: this.lastError }
  }

  isOpen(): boolean {
    return this.state.phase === 'open' && this.socket?.readyState === WebSocket.OPEN
  }

  send(message: DeviceMessage): boolean {
    if (!this.isOpen()) return false
    this.socket?.send(JSON.stringify(message))
    return true
  }

  sendBinary(frame: Uint8Array): boolean {
    if (!this.isOpen()) return false
    this.socket?.send(frame, { binary: true })
    return true
  }

  buffered(): number {
    return this.socket?.bufferedAmount ?? 0
  }

  /** Connects now instead of waiting out the delay. */
  hurry(): void {
    if (this.state.phase !== 'waiting') return
    this.cancelWait?.()
    this.apply({ type: 'due' })
  }

  private get owner(): LinkListener {
    if (this.listener === null) throw new Error('the link was not started')
    return this.listener
  }

  private apply(event: LinkEvent): void {
    const before = this.state.phase
    const [next, effects] = linkStep(this.state, event, {
      minMs: this.options.reconnectMinMs,
      maxMs: this.options.reconnectMaxMs,
    })
    this.state = next
    if ((before === 'open') !== (next.phase === 'open')) this.since = this.options.world.now()
    if (before === 'open' && next.phase !== 'open') this.owner.onDown()
    for (const effect of effects) this.perform(effect)
  }

  private perform(effect: LinkEffect): void {
    switch (effect.type) {
      case 'connect':
        return this.connect()
      case 'hello':
        this.socket?.send(JSON.stringify(this.owner.hello()))
        return
      case 'wait':
        this.options.log.info({ ms: effect.ms, lastError: this.lastError }, 'link down, connecting again')
        this.cancelWait = this.options.world.after(effect.ms, () => this.apply({ type: 'due' }))
        return
      case 'refused':
        this.lastError = effect.text
        return this.owner.onRefused(effect.reason, effect.text)
      case 'fatal':
        this.lastError = effect.text
        return this.owner.onFatal(effect.reason, effect.text)
      case 'disconnect':
        this.cancelWait?.()
        this.cancelPing?.()
        this.socket?.close(1000)
    }
  }

  private connect(): void {
    const { world, url } = this.options
    this.retryAfterMs = null
    this.isSilent = false
    const socket = new WebSocket(url, {
      perMessageDeflate: false,
      maxPayload: linkLimits.frameBytes,
      handshakeTimeout: 10_000,
    })
    this.socket = socket
    this.lastHeardAt = world.monotonic()
    socket.on('open', () => this.current(socket) && this.apply({ type: 'opened' }))
    socket.on('message', (data, isBinary) => this.current(socket) && this.received(data, isBinary))
    socket.on('ping', () => (this.lastHeardAt = world.monotonic()))
    socket.on('pong', () => (this.lastHeardAt = world.monotonic()))
    // A proxy's page or a server that starts: tried again, whatever the status says.
    socket.on('unexpected-response', (request, response) => {
      const seconds = Number(response.headers['retry-after'])
      if (Number.isFinite(seconds)) this.retryAfterMs = Math.min(seconds * 1_000, this.options.reconnectMaxMs)
      this.lastError = `the server answered ${response.statusCode ?? 'nothing'} instead of a WebSocket`
      request.destroy()
      this.down(socket, 1006)
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      this.lastError = certificateTrouble(error) ?? error.message
      if (this.current(socket)) this.isSilent = silentErrors.test(error.code ?? error.message)
    })
    socket.on('close', (code, reason) => {
      if (reason.length > 0) this.lastError = reason.toString('utf8')
      this.down(socket, code)
    })
    this.keepAlive(socket)
  }

  private current(socket: WebSocket): boolean {
    return this.socket === socket
  }

  private down(socket: WebSocket, code: number): void {
    if (!this.current(socket)) return
    this.socket = null
    this.cancelPing?.()
    this.apply({
      type: 'closed',
      code,
      now: this.options.world.monotonic(),
      random: this.options.world.random(),
      retryAfterMs: this.retryAfterMs,
      spreadMs: this.isSilent ? 0 : this.spreadMs,
      runsWithinMs: this.owner.holdsRuns()
        ? delayWithRunsMs({ maxMs: this.options.reconnectMaxMs }, this.spreadMs)
        : null,
      hasLiveRuns: this.owner.hasLiveRuns(),
    })
  }

  private received(data: RawData, isBinary: boolean): void {
    this.lastHeardAt = this.options.world.monotonic()
    const bytes = Array.isArray(data) ? Buffer.concat(data) : Buffer.isBuffer(data) ? data : Buffer.from(data)
    if (isBinary) return
    const value = parseJsonText(bytes.toString('utf8')) as { type?: unknown } | null | undefined
    if (value === undefined) {
      this.options.log.warn({}, 'the server sent what is not JSON')
      return
    }
    const parsed = serverMessage.safeParse(value)
    if (!parsed.success) {
      // A newer server may say what this daemon does not know yet.
      this.options.log.warn({ type: value?.type }, 'link message ignored')
      return
    }
    if (parsed.data.type === 'welcome' || parsed.data.type === 'heartbeat.ack')
      this.spreadMs = parsed.data.reconnectSpreadMs ?? this.spreadMs
    if (parsed.data.type === 'welcome') {
      this.lastError = null
      this.apply({ type: 'welcomed', now: this.options.world.monotonic() })
      return this.owner.onWelcome(parsed.data)
    }
    this.owner.onMessage(parsed.data)
  }

  /** Pings, and closes a silent socket: a cut wire is noticed by nothing else for a quarter of an hour. */
  private keepAlive(socket: WebSocket): void {
    const { world, pingMs } = this.options
    const limitMs = silenceLimitMs(this.options)
    this.cancelPing?.()
    const tick = () => {
      if (!this.current(socket)) return
      const silentMs = world.monotonic() - this.lastHeardAt
      if (silentMs >= limitMs) {
        this.lastError = 'nothing was heard from the server'
        this.isSilent = true
        socket.terminate()
        return this.down(socket, 1006)
      }
      if (socket.readyState === WebSocket.OPEN) socket.ping()
      // At the limit itself and not with the next ping, which may come a whole interval later.
      this.cancelPing = world.after(Math.min(pingMs, Math.max(1, limitMs - silentMs)), tick)
    }
    this.cancelPing = world.after(pingMs, tick)
  }

  /** Pings the socket at once after a sleep, and ends a delay that was being waited out. */
  private woke(ms: number): void {
    this.options.log.info({ ms }, 'the machine slept or was held up')
    this.hurry()
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.ping()
  }
}

/** The time in which a machine that woke reaches the control plane, if it is there. */
const reachMs = 60_000

/** When the control plane was heard last, and the heartbeats that keep the lease. */
export class Contact {
  private readonly world: World
  private readonly sinceBoot: SinceBoot
  private heardAt: number
  private cancelBeat: (() => void) | null = null
  private cancelLook: (() => void) | null = null
  /** By the monotonic clock. */
  private awakeSince = -Infinity
  private readonly clock: ClockWatch

  /** `clock`: it counts a sleep of the machine, and no change of the wall clock, which is neither a silence nor a sleep. */
  constructor(world: World, clock: SinceBoot = sinceBoot) {
    this.world = world
    this.sinceBoot = clock
    this.clock = new ClockWatch({
      world: { ...world, now: clock },
      jumpMs: reachMs,
      onJump: () => (this.awakeSince = world.monotonic()),
    })
    this.heardAt = clock()
  }

  heard(): void {
    this.heardAt = this.sinceBoot()
  }

  private silence(): number {
    return this.sinceBoot() - this.heardAt
  }

  /** Calls `beat` about every `everyMs` until it says false. */
  keepBeating(everyMs: number, beat: () => boolean): void {
    this.cancelBeat?.()
    // ± 20 %, so that devices welcomed in one second do not beat in one second for ever.
    const ms = everyMs * (0.8 + 0.4 * this.world.random())
    this.cancelBeat = this.world.after(ms, () => {
      if (beat()) this.keepBeating(everyMs, beat)
    })
  }

  /**
   * Calls `look` every `everyMs`, which is less than a minute, with the silence. A machine that slept has a minute to reach the
   * control plane again, which may have slept on the same machine; until then the silence is 0.
   */
  keepLooking(everyMs: number, look: (silentMs: number) => void): void {
    this.cancelLook = this.world.after(everyMs, () => {
      this.clock.check()
      const isJustAwake = this.world.monotonic() - this.awakeSince < reachMs
      look(isJustAwake ? 0 : this.silence())
      this.keepLooking(everyMs, look)
    })
  }

  stop(): void {
    this.cancelBeat?.()
    this.cancelLook?.()
  }
}
