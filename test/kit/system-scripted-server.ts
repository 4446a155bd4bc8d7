import type { RunId } from '../../shared/lib/ids.ts'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer, type WebSocket } from 'ws'
import { decodeFrame } from '../../shared/device/frame.ts'
import { linkLimits } from '../../shared/device/limits.ts'
import {
  deviceMessage,
  type BinaryHeader,
  type DeviceMessage,
  type EventsHeader,
  type ServerMessage,
} from '../../shared/device/protocol.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import { waitFor } from './programs.ts'

type Of<T extends DeviceMessage['type']> = DeviceMessage & { type: T }
export interface Lease {
  runId: RunId
  fence: number
}

/**
 * A control plane that a test plays towards a real daemon, over a real WebSocket: it welcomes it, acknowledges all events
 * and closes all endings unless it is told not to, and says what the test tells it to.
 */
export class ScriptedServer {
  readonly said: DeviceMessage[] = []
  readonly events: EventsHeader[] = []
  /** Bodies of all binary frames as they came: events and change-sets. */
  readonly bodies: Buffer[] = []
  capacity = 3
  /** Runs the next welcome speaks of. */
  verdicts: (ServerMessage & { type: 'welcome' })['runs'] = []
  /** Says what to answer to a frame of events and to an ending; null: nothing. */
  onEvents: (header: EventsHeader) => ServerMessage | null = ({ runId, fence, lastSeq }) => ({
    type: 'ack',
    runId,
    fence,
    seq: lastSeq,
  })
  onEnded: (ended: Of<'run.ended'>) => ServerMessage | null = ({ runId, fence }) => ({
    type: 'run.closed',
    runId,
    fence,
  })
  readonly #http: Server
  #socket: WebSocket | null = null

  private constructor(http: Server) {
    this.#http = http
  }

  static async start(): Promise<ScriptedServer> {
    const http = createServer((_, response) => void response.writeHead(404).end())
    const server = new ScriptedServer(http)
    const sockets = new WebSocketServer({ server: http, maxPayload: linkLimits.frameBytes })
    sockets.on('connection', (socket) => server.#connected(socket))
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
    return server
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`
  }

  send(message: ServerMessage): void {
    this.#socket?.send(JSON.stringify(message))
  }

  offer(lease: Lease, spec: RunSpec): void {
    this.send({ type: 'run.offer', ...lease, spec, expiresInMs: 10_000 })
  }

  start(lease: Lease, secrets: Record<string, string> = {}): void {
    this.send({ type: 'run.start', ...lease, token: `token-of-${lease.runId}`, apiUrl: this.url, secrets })
  }

  /** Offers the run, starts it once it is accepted, and waits for its end. */
  async play(lease: Lease, spec: RunSpec): Promise<Of<'run.ended'>['report']> {
    this.offer(lease, spec)
    await this.heard('run.accepted', lease)
    this.start(lease)
    return (await this.heard('run.ended', lease)).report
  }

  /** All messages of a type about one lease, or about any. */
  all<T extends DeviceMessage['type']>(type: T, lease?: Lease): Of<T>[] {
    return this.said.filter((message): message is Of<T> => {
      if (message.type !== type) return false
      if (!lease) return true
      return 'runId' in message && message.runId === lease.runId && message.fence === lease.fence
    })
  }

  /** Waits until there are `count` of them. */
  async heard<T extends DeviceMessage['type']>(type: T, lease?: Lease, count = 1): Promise<Of<T>> {
    const about = () => this.said.map(({ type }) => type).join(', ')
    await waitFor(() => this.all(type, lease).length >= count, `${count} ${type} from the daemon`, { about })
    return this.all(type, lease)[count - 1]!
  }

  /** Breaks the link, as a network does. */
  drop(): void {
    this.#socket?.terminate()
  }

  async stop(): Promise<void> {
    this.#socket?.terminate()
    this.#http.closeAllConnections()
    await new Promise<void>((resolve) => this.#http.close(() => resolve()))
  }

  #connected(socket: WebSocket): void {
    this.#socket = socket
    socket.on('error', () => {})
    socket.on('message', (data, isBinary) => {
      const bytes = data as Buffer
      if (isBinary) {
        const frame = decodeFrame(bytes)
        if (frame.ok) {
          this.bodies.push(Buffer.from(frame.body))
          this.#frame(frame.header)
        }
        return
      }
      const message = deviceMessage.parse(JSON.parse(bytes.toString('utf8')))
      this.said.push(message)
      if (message.type === 'hello') this.#welcome()
      if (message.type === 'run.ended') this.#answer(this.onEnded(message))
    })
  }

  #frame(header: BinaryHeader): void {
    if (header.type !== 'run.events') return
    this.events.push(header)
    this.#answer(this.onEvents(header))
  }

  #answer(message: ServerMessage | null): void {
    if (message) this.send(message)
  }

  #welcome(): void {
    this.send({
      type: 'welcome',
      deviceId: 'device',
      displayName: 'device',
      heartbeatMs: linkLimits.heartbeatMs,
      leaseMs: linkLimits.leaseMs,
      serverTime: Date.now(),
      capacity: this.capacity,
      remoteControlRevoked: false,
      runs: this.verdicts,
      newToken: null,
    })
  }
}
