import type { Duplex } from 'node:stream'
import { WebSocket, type RawData } from 'ws'
import { closeCodes, linkLimits, silenceLimitMs, type CloseName } from '../../shared/device/limits.ts'
import { decodeFrame } from '../../shared/device/frame.ts'
import { parseStorable } from '../../shared/lib/storable.ts'
import {
  deviceMessage,
  type BinaryHeader,
  type DeviceMessage,
  type ServerMessage,
} from '../../shared/device/protocol.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../process/log.ts'

/**
 * A session is one WebSocket of a device, from accept to close.
 *
 *     waiting --hello--> opening --welcome--> open --> closed
 *        |                  |                   |
 *        +-- 5 s, other frame, too large -------+--> closed (with a named code)
 *
 * Before hello at most 16 KiB are read, counted as they arrive, so a frame that claims to be large is never collected.
 * Messages are handled one after another in their order of arrival. The handler of a frame of events or of a run's end only queues it, so
 * a slow commit does not hold up the heartbeats behind it; nor does that of a run that is accepted, as far as a device accepts some at once. Unprocessed bytes are bounded: beyond `heldBytes`, and while
 * the sender of a hello is looked up, nothing more is read. A peer that is silent for 45 s although pinged every 20 s is
 * given up: TCP alone would take a quarter of an hour to notice a cut wire.
 */
export interface SessionHandlers {
  /** Resolves with true when the device was welcomed; with false when the socket was closed instead. */
  hello(session: Session, hello: DeviceMessage & { type: 'hello' }): Promise<boolean>
  /** Returns nothing when all is done, which spares a heartbeat the promises. */
  message(
    session: Session,
    message: Exclude<DeviceMessage, { type: 'run.ended' | 'run.accepted' }>,
  ): Promise<void> | void
  /** Resolves when the run is the device's, or is not: it becomes so together with what other devices accept. */
  accepted(session: Session, message: DeviceMessage & { type: 'run.accepted' }): Promise<void>
  /** Resolves when the report is stored or given up: it is stored together with what comes later. */
  ended(session: Session, message: DeviceMessage & { type: 'run.ended' }): Promise<void>
  /** Resolves when the body is no longer needed. */
  frame(session: Session, header: BinaryHeader, body: Buffer): Promise<void>
  closed(session: Session): void
}

export interface SessionOptions {
  socket: WebSocket
  /** The stream below the socket, whose bytes are counted before hello. */
  wire: Duplex
  world: World
  log: Log
  handlers: SessionHandlers
  onClose(name: CloseName | 'peer'): void
  /** Durations, for tests. */
  helloMs?: number
  pingMs?: number
  deadMs?: number
  heldBytes?: number
}

type State = 'waiting' | 'opening' | 'open' | 'closed'
/** Bytes that may wait in the socket before a device that does not read them is given up. */
const maxBuffered = 32 * 1024 * 1024
/** Unprocessed bytes of one device; more than its runs may have in flight. */
const maxHeld = 64 * 1024 * 1024
/** Beside so many frames, ends and accepted runs of a device the next accepted run holds up what comes after it. */
const mostAccepted = 32
/** A longer heartbeat is read each time. */
const keptBeatBytes = 2_048
/** Allowance for frame headers and for pings before hello. */
const overheadBytes = 1024

export class Session {
  private readonly options: SessionOptions
  private state: State = 'waiting'
  private work: Promise<void> = Promise.resolve()
  /** Tasks that are not done. */
  private pending = 0
  /** The bytes of the last heartbeat and what they say. Most say the same again, and need not be read again. */
  private lastBeat: { bytes: Buffer; message: DeviceMessage } | null = null
  private cancels: (() => void)[] = []
  private pongs: (() => void)[] = []
  private held = 0
  /** Tasks of `queue` that are begun and not done. */
  private underWay = 0
  lastHeardAt: number

  constructor(options: SessionOptions) {
    this.options = options
    this.lastHeardAt = options.world.monotonic()
    const { socket, world } = options
    this.cancels.push(
      world.after(options.helloMs ?? linkLimits.helloMs, () => {
        if (this.state === 'waiting') this.close('hello_expected')
      }),
    )
    this.countUntilHello()
    socket.on('message', (data, isBinary) => this.received(data, isBinary))
    socket.on('pong', () => {
      this.lastHeardAt = world.monotonic()
      for (const heard of this.pongs.splice(0)) heard()
    })
    socket.on('ping', () => (this.lastHeardAt = world.monotonic()))
    // `ws` reports a frame over its limit as an error before it closes; the close handler does the rest.
    socket.on('error', (error) => options.log.debug({ err: error }, 'link error'))
    socket.on('close', () => this.gone('peer'))
    this.keepAlive()
  }

  get isOpen(): boolean {
    return this.state !== 'closed' && this.options.socket.readyState === WebSocket.OPEN
  }

  send(message: ServerMessage): boolean {
    const { socket } = this.options
    if (!this.isOpen) return false
    if (socket.bufferedAmount > maxBuffered) {
      this.close('silent')
      return false
    }
    socket.send(JSON.stringify(message))
    return true
  }

  close(name: CloseName): void {
    if (this.state === 'closed') return
    const { socket, world } = this.options
    socket.close(closeCodes[name].code, closeCodes[name].text.slice(0, 120))
    // A peer that does not answer the close is cut off.
    world.after(1_000, () => socket.terminate())
    this.gone(name)
  }

  /** Pings and resolves true if anything was heard within `ms`. */
  challenge(ms: number): Promise<boolean> {
    const { socket, world } = this.options
    if (this.state === 'closed' || socket.readyState !== WebSocket.OPEN) return Promise.resolve(false)
    return new Promise((resolve) => {
      const cancel = world.after(ms, () => resolve(false))
      this.pongs.push(() => {
        cancel()
        resolve(true)
      })
      socket.ping()
    })
  }

  private countUntilHello(): void {
    const { wire, socket } = this.options
    let bytes = 0
    const onData = (chunk: Buffer) => {
      bytes += chunk.length
      if (this.state !== 'waiting') wire.off('data', onData)
      else if (bytes > linkLimits.helloBytes + overheadBytes) {
        wire.off('data', onData)
        this.close('frame_too_large')
        // The socket reads nothing more, not even the peer's answer to the close: it is cut off a moment later.
        socket.pause()
      }
    }
    wire.on('data', onData)
  }

  private received(data: RawData, isBinary: boolean): void {
    if (this.state === 'closed') return
    this.lastHeardAt = this.options.world.monotonic()
    const bytes = Array.isArray(data) ? Buffer.concat(data) : Buffer.isBuffer(data) ? data : Buffer.from(data)
    if (this.state === 'waiting') {
      if (bytes.length > linkLimits.helloBytes) return this.close('frame_too_large')
      if (isBinary) return this.close('hello_expected')
    }
    if (isBinary) return this.receivedFrame(bytes)
    if (bytes.length > linkLimits.messageBytes) return this.close('frame_too_large')
    const message = this.lastBeat?.bytes.equals(bytes) ? this.lastBeat.message : parseMessage(bytes)
    if (message === 'malformed') return this.close('malformed_frame')
    // An unknown type comes from a newer device and is ignored.
    if (message === 'unknown') return this.options.log.info({}, 'link message of an unknown type')
    if (this.state === 'waiting') {
      if (message.type !== 'hello') return this.close('hello_expected')
      this.state = 'opening'
      this.options.socket.pause()
      this.enqueue(async () => {
        if (await this.options.handlers.hello(this, message)) this.state = this.isClosed() ? 'closed' : 'open'
        this.options.socket.resume()
      })
      return
    }
    if (message.type === 'hello') return this.close('malformed_frame')
    if (message.type === 'heartbeat' && bytes.length <= keptBeatBytes && message !== this.lastBeat?.message)
      this.lastBeat = { bytes: Buffer.from(bytes), message }
    if (message.type === 'run.ended') return this.queue(bytes.length, () => this.options.handlers.ended(this, message))
    if (message.type === 'run.accepted')
      return this.queue(bytes.length, () => this.options.handlers.accepted(this, message), mostAccepted)
    this.enqueue(() => this.options.handlers.message(this, message), bytes.length)
  }

  private receivedFrame(bytes: Buffer): void {
    const decoded = decodeFrame(bytes)
    if (!decoded.ok) {
      this.options.log.warn({ error: decoded.error }, 'malformed frame')
      return this.close('malformed_frame')
    }
    const body = Buffer.from(decoded.body.buffer, decoded.body.byteOffset, decoded.body.byteLength)
    this.queue(bytes.length, () => this.options.handlers.frame(this, decoded.header, body))
  }

  /**
   * Begins a task after those before it and holds its bytes until it is done; what comes later waits for it only where more than `most` of
   * them are under way.
   */
  private queue(bytes: number, task: () => Promise<void>, most = Number.POSITIVE_INFINITY): void {
    const release = this.hold(bytes)
    this.enqueue(() => {
      this.underWay++
      const done = task()
        .catch((error: unknown) => {
          this.options.log.error({ err: error }, 'a frame could not be handled')
          this.close('going_away')
        })
        .finally(() => {
          this.underWay--
          release()
        })
      return this.underWay > most ? done : undefined
    })
  }

  /** Counts bytes until they are released. */
  private hold(bytes: number): () => void {
    const { socket, heldBytes = maxHeld } = this.options
    let isHeld = true
    this.held += bytes
    if (this.held > heldBytes) socket.pause()
    return () => {
      if (!isHeld) return
      isHeld = false
      this.held -= bytes
      if (this.held <= heldBytes / 2 && this.state === 'open') socket.resume()
    }
  }

  /** Runs a task after those before it, and at once when there is none. Its bytes are held while it waits or works. */
  private enqueue(task: () => Promise<void> | void, bytes = 0): void {
    const work = this.pending === 0 ? this.tried(task) : this.work.then(() => this.tried(task))
    if (work === undefined) return
    const release = this.hold(bytes)
    this.pending++
    this.work = work.then(() => {
      this.pending--
      release()
    })
  }

  /** Does not throw, and does nothing once the session is closed. */
  private tried(task: () => Promise<void> | void): Promise<void> | void {
    if (this.isClosed()) return
    const failed = (error: unknown) => {
      this.options.log.error({ err: error }, 'a link message could not be handled')
      // The device sends the message again after it connects anew.
      this.close('going_away')
    }
    try {
      return task()?.catch(failed)
    } catch (error) {
      failed(error)
    }
  }

  private isClosed(): boolean {
    return this.state === 'closed'
  }

  private keepAlive(): void {
    const { world, socket } = this.options
    const pingMs = this.options.pingMs ?? linkLimits.pingMs
    const limitMs = silenceLimitMs({ pingMs, deadMs: this.options.deadMs ?? linkLimits.deadMs })
    const tick = () => {
      if (this.state === 'closed') return
      // Silence means nothing while nothing is read.
      if (socket.isPaused) this.lastHeardAt = world.monotonic()
      const silentMs = world.monotonic() - this.lastHeardAt
      if (silentMs >= limitMs) {
        this.close('silent')
        socket.terminate()
        return
      }
      if (socket.readyState === WebSocket.OPEN) socket.ping()
      // Checks at the limit itself and not at the next ping, which may come a whole interval later.
      this.cancels.push(world.after(Math.min(pingMs, Math.max(1, limitMs - silentMs)), tick))
      if (this.cancels.length > 8) this.cancels = this.cancels.slice(-2)
    }
    this.cancels.push(world.after(pingMs, tick))
  }

  private gone(name: CloseName | 'peer'): void {
    if (this.state === 'closed') return
    this.state = 'closed'
    // The peer's answer to the close is still read; anything else is ignored.
    this.options.socket.resume()
    for (const cancel of this.cancels.splice(0)) cancel()
    this.options.onClose(name)
    this.options.handlers.closed(this)
  }
}

function parseMessage(bytes: Buffer): DeviceMessage | 'malformed' | 'unknown' {
  let value: unknown
  try {
    value = parseStorable(bytes.toString('utf8'))
  } catch {
    return 'malformed'
  }
  const parsed = deviceMessage.safeParse(value)
  if (parsed.success) return parsed.data
  const type = (value as { type?: unknown } | null)?.type
  const known = deviceMessage.options.some((option) => option.shape.type.value === type)
  return typeof type === 'string' && !known ? 'unknown' : 'malformed'
}
