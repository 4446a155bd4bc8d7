import type { RunId } from '../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import { WebSocket } from 'ws'
import { linkPath } from '../../control-plane/link/server.ts'
import type { ChangeSetResult } from '../../shared/device/change-set.ts'
import type { FolderCheck } from '../../shared/device/folder-check.ts'
import { encodeFrame } from '../../shared/device/frame.ts'
import { linkLimits } from '../../shared/device/limits.ts'
import {
  serverMessage,
  type ClaimState,
  type DeviceMessage,
  type EndReport,
  type ServerMessage,
} from '../../shared/device/protocol.ts'
import { askedCallOf, type RunEventBody } from '../../shared/runs/events.ts'
import type { ExitReason } from '../../shared/runs/exit-reasons.ts'
import { endReport } from './end-report.ts'
import type { TestServer } from './server.ts'

// The other end of a link, played by a test over a real WebSocket: it says what the test tells it to, and keeps what the
// server says until the test asks for it.

type Named<T extends ServerMessage['type']> = ServerMessage & { type: T }
type Hello = DeviceMessage & { type: 'hello' }

export interface Identity {
  publicId: string
  deviceId: string
  token: string
  displayName: string
}

const accepting: ClaimState = { accepting: true, reason: null, message: null, activeRuns: 0 }
/** On a machine that is busy with all tests at once. */
const answerMs = 30_000
/** As a real one: a test that moves the clock and then takes its time would find the device gone. */
const beatMs = 20_000

/** Makes a device of the person by the internal route, without connecting it. */
export async function enrol(
  server: TestServer,
  options: { token?: string; body?: Record<string, unknown> } = {},
): Promise<Identity> {
  return server.ok('/device/enrol', {
    base: '/api',
    body: { hostname: 'laptop', platform: 'linux', version: '0.1.0', ...options.body },
    ...(options.token === undefined ? {} : { token: options.token }),
  }) as Promise<Identity>
}

export class FakeDevice {
  readonly identity: Identity
  readonly closed: Promise<number>
  private readonly socket: WebSocket
  private readonly inbox: ServerMessage[] = []
  private readonly waiting = new Set<() => void>()
  /** The state that it told last; null before its hello. */
  private claimState: ClaimState | null = null
  /** Answers questions of these kinds by itself when set. */
  folderAnswer: ((rootPath: string) => FolderCheck) | null = null
  changeSetAnswer: ((runId: RunId) => ChangeSetResult) | null = null

  /** Enrols (unless an identity is given), connects and says hello; resolves when it was welcomed. */
  static async connect(
    server: TestServer,
    options: { identity?: Identity; token?: string; hello?: Partial<Hello> } = {},
  ): Promise<FakeDevice> {
    const identity = options.identity ?? (await enrol(server, options))
    const device = await FakeDevice.open(server, identity, options.hello)
    await device.next('welcome')
    return device
  }

  /** Connects and says hello, whatever the server makes of it. */
  static async open(
    server: Pick<TestServer, 'nextUrl'>,
    identity: Identity,
    hello: Partial<Hello> = {},
  ): Promise<FakeDevice> {
    const socket = new WebSocket(server.nextUrl().replace('http', 'ws') + linkPath, { perMessageDeflate: false })
    const device = new FakeDevice(socket, identity)
    await new Promise<void>((resolve, reject) => {
      socket.once('open', () => resolve())
      socket.once('error', reject)
    })
    device.send({
      type: 'hello',
      protocol: linkLimits.protocol,
      token: identity.token,
      publicId: identity.publicId,
      instance: crypto.randomUUID(),
      version: '0.1.0',
      platform: 'linux',
      hostname: 'laptop',
      runs: [],
      claimState: accepting,
      ...hello,
    })
    return device
  }

  private constructor(socket: WebSocket, identity: Identity) {
    this.socket = socket
    this.identity = identity
    this.closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('message', (data) => this.received(serverMessage.parse(JSON.parse((data as Buffer).toString('utf8')))))
    socket.on('error', () => undefined)
    const beat = setInterval(() => {
      if (this.claimState !== null) this.send({ type: 'heartbeat', claimState: this.claimState })
    }, beatMs)
    socket.once('close', () => clearInterval(beat))
  }

  send(message: DeviceMessage): void {
    if (message.type === 'hello' || message.type === 'heartbeat') this.claimState = message.claimState
    this.socket.send(JSON.stringify(message))
  }

  /** Beats at once, as after time that a test let pass, and waits until the server has noted it. */
  async beat(): Promise<void> {
    if (this.claimState === null) throw new Error('the device has not said hello')
    while (this.pending.includes('heartbeat.ack')) await this.next('heartbeat.ack')
    this.send({ type: 'heartbeat', claimState: this.claimState })
    await this.next('heartbeat.ack')
  }

  /** The next message of this type that was not asked for yet. */
  async next<T extends ServerMessage['type']>(type: T): Promise<Named<T>> {
    return (await this.nextOf((message) => message.type === type, type)) as Named<T>
  }

  private async nextOf(isAsked: (message: ServerMessage) => boolean, name: string): Promise<ServerMessage> {
    const deadline = performance.now() + answerMs
    for (;;) {
      const at = this.inbox.findIndex(isAsked)
      if (at >= 0) return this.inbox.splice(at, 1)[0]!
      const left = deadline - performance.now()
      if (left <= 0) throw new Error(`no ${name}; there are: ${this.inbox.map((message) => message.type).join(', ')}`)
      await this.change(left)
    }
  }

  /** Types of what came and was not asked for. */
  get pending(): string[] {
    return this.inbox.map((message) => message.type)
  }

  /** Takes the next offer that was not withdrawn before it was answered, and starts it. */
  async take(): Promise<FakeRun> {
    for (;;) {
      const offer = await this.next('run.offer')
      const start = await this.accept(offer)
      if (start !== null) return new FakeRun(this, { offer, token: start.token })
    }
  }

  /** Accepts the offer; null where that one was withdrawn before. */
  async accept({ runId, fence }: Named<'run.offer'>): Promise<Named<'run.start'> | null> {
    this.send({ type: 'run.accepted', runId, fence })
    const answer = await this.nextOf(
      (message) =>
        (message.type === 'run.start' || message.type === 'run.withdrawn') &&
        message.runId === runId &&
        message.fence === fence,
      'run.start',
    )
    return answer.type === 'run.start' ? answer : null
  }

  sendFrame(frame: Uint8Array): void {
    this.socket.send(frame)
  }

  async disconnect(): Promise<void> {
    this.socket.close()
    await this.closed
  }

  private received(message: ServerMessage): void {
    if (message.type === 'folder.check' && this.folderAnswer) {
      const result = this.folderAnswer(message.rootPath)
      return this.send({ type: 'folder.result', requestId: message.requestId, result })
    }
    if (message.type === 'change_set.get' && this.changeSetAnswer) {
      const { requestId, runId, fence } = message
      return this.sendChangeSet({ runId, fence, requestId }, this.changeSetAnswer(runId))
    }
    this.inbox.push(message)
    for (const wake of this.waiting) wake()
  }

  sendChangeSet(to: { runId: RunId; fence: number; requestId: string | null }, result: ChangeSetResult): void {
    this.sendFrame(encodeFrame({ type: 'change_set', ...to }, Buffer.from(JSON.stringify(result))))
  }

  private async change(ms: number): Promise<void> {
    let wake = () => {}
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
      this.waiting.add(wake)
    })
    this.waiting.delete(wake)
  }
}

/** A run that a fake device executes: it writes the log that the test dictates. */
export class FakeRun {
  readonly runId: RunId
  readonly fence: number
  /** The run's own token. */
  readonly token: string
  readonly spec: Named<'run.offer'>['spec']
  private readonly device: FakeDevice
  private readonly hash = createHash('sha256')
  private seq = 0

  constructor(device: FakeDevice, run: { offer: Named<'run.offer'>; token: string }) {
    this.device = device
    this.runId = run.offer.runId
    this.fence = run.offer.fence
    this.spec = run.offer.spec
    this.token = run.token
  }

  /** Sends the events as one frame; resolves when they are stored. */
  async events(...events: readonly RunEventBody[]): Promise<void> {
    await this.lines(
      events.map((event, at) => JSON.stringify({ seq: this.seq + at + 1, at: Date.now(), ...event })),
      events,
    )
  }

  /** The same with lines as a broken device may write them. */
  async lines(lines: readonly string[], events: readonly RunEventBody[] = []): Promise<void> {
    const body = Buffer.from(lines.map((line) => `${line}\n`).join(''))
    this.hash.update(body)
    const firstSeq = this.seq + 1
    this.seq += lines.length
    const usage = events.findLast((event) => event.kind === 'usage')?.data
    const session = events.findLast((event) => event.kind === 'session')?.data
    const approvals = events.flatMap((event) => (event.kind === 'permission' ? (askedCallOf(event.data) ?? []) : []))
    const header = {
      type: 'run.events' as const,
      runId: this.runId,
      fence: this.fence,
      firstSeq,
      lastSeq: this.seq,
      kinds: events.length === 0 ? { raw: lines.length } : countKinds(events),
      sha256: createHash('sha256').update(body).digest('hex'),
      ...(usage === undefined ? {} : { usage }),
      ...(session === undefined ? {} : { sessionId: session.sessionId }),
      ...(approvals.length === 0 ? {} : { approvals }),
    }
    this.device.sendFrame(encodeFrame(header, body))
    for (;;) {
      const { runId, seq } = await this.device.next('ack')
      if (runId === this.runId && seq >= this.seq) return
    }
  }

  /** Writes the last event and reports the ending; resolves when it is stored. */
  async end(exitReason: ExitReason = 'completed', report: Partial<EndReport> = {}): Promise<void> {
    await this.events({ kind: 'ended', data: { exitReason, exitCode: 0, signal: null } })
    await this.report(exitReason, report)
  }

  /** Reports the ending alone. */
  async report(exitReason: ExitReason, report: Partial<EndReport> = {}): Promise<void> {
    this.device.send(this.ending(exitReason, report))
    await this.device.next('run.closed')
  }

  /** Returns the message that tells of the ending. */
  ending(exitReason: ExitReason, report: Partial<EndReport> = {}): DeviceMessage {
    return {
      type: 'run.ended',
      runId: this.runId,
      fence: this.fence,
      report: endReport({
        exitReason,
        eventCount: this.seq,
        logHash: this.hash.copy().digest('hex'),
        ...report,
      }),
    }
  }
}

function countKinds(events: readonly RunEventBody[]): Record<string, number> {
  const kinds: Record<string, number> = {}
  for (const { kind } of events) kinds[kind] = (kinds[kind] ?? 0) + 1
  return kinds
}
