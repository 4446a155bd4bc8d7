import { connect, type Socket } from 'node:net'
import type { ProcessIdentity } from '../../process/identity.ts'
import { jsonLine, jsonLineReader, parseJsonText } from '../../../shared/lib/lines.ts'
import { hostReply, type HostRecord, type HostReply, type HostRequest } from '../../run-host/wire/protocol.ts'

export interface HostConnectionHandlers {
  reply(reply: HostReply): void
  /** The socket is gone: the host ended, died, or another daemon took its place. */
  lost(): void
}

/** The size of the longest reply, a change-set: a full diff and all paths, of characters that JSON escapes. */
const maxReplyBytes = 128 * 1024 * 1024

type HostHello = Extract<HostReply, { type: 'hello' }>

/** The host belongs to another daemon, whose process lives. */
export class HostRefusedError extends Error {
  readonly owner: number
  constructor(owner: number) {
    super(`the run host belongs to the daemon with pid ${owner}`)
    this.owner = owner
  }
}

/** The daemon's end of a run host's socket. */
export class HostConnection {
  readonly hostId: string
  readonly record: HostRecord
  private readonly socket: Socket
  private handlers: HostConnectionHandlers = { reply: () => undefined, lost: () => undefined }
  private early: HostReply[] | null = []
  private said: HostHello | null = null
  private onHello: () => void = () => undefined
  private onRefused: (error: Error) => void = () => undefined
  private closed = false

  private constructor(socket: Socket, record: HostRecord) {
    this.socket = socket
    this.hostId = record.hostId
    this.record = record
  }

  /** Connects to the host. Rejects when nobody listens there, it does not say hello in time, or another daemon has it (HostRefusedError). */
  static open(record: HostRecord, owner: ProcessIdentity, timeoutMs: number): Promise<HostConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect(record.socket)
      const connection = new HostConnection(socket, record)
      connection.onRefused = reject
      connection.send({ type: 'owner', ...owner })
      socket.setTimeout(timeoutMs, () => socket.destroy(new Error('the run host did not answer')))
      connection.onHello = () => {
        socket.setTimeout(0)
        resolve(connection)
      }
      socket.once('error', reject)
      socket.once('close', () => reject(new Error('the run host closed the connection')))
      connection.listen()
    })
  }

  /** Hands replies to these from now on, and at once those that came before. */
  attach(handlers: HostConnectionHandlers): void {
    this.handlers = handlers
    const early = this.early ?? []
    this.early = null
    for (const reply of early) handlers.reply(reply)
    if (this.closed) handlers.lost()
  }

  send(request: HostRequest): boolean {
    if (this.closed) return false
    this.socket.write(jsonLine(request))
    return true
  }

  get isOpen(): boolean {
    return !this.closed
  }

  /** Returns what the host said of itself when this connection was made. */
  get hello(): HostHello | null {
    return this.said
  }

  /** Leaves the host to itself. */
  detach(): void {
    this.handlers = { reply: () => undefined, lost: () => undefined }
    this.closed = true
    this.socket.destroy()
  }

  private listen(): void {
    const read = jsonLineReader(maxReplyBytes)
    this.socket.on('data', (chunk: Buffer) => {
      const { lines, isTooLong } = read(chunk)
      for (const line of lines) this.receive(line)
      if (isTooLong) this.socket.destroy(new Error('what the run host says is too long'))
    })
    const lost = () => {
      if (this.closed) return
      this.closed = true
      if (!this.early) this.handlers.lost()
    }
    this.socket.on('error', lost)
    this.socket.on('close', lost)
  }

  private receive(line: string): void {
    // A host of another release may say what this daemon does not know: ignored.
    const parsed = hostReply.safeParse(parseJsonText(line))
    if (!parsed.success) return
    if (parsed.data.type === 'refused') return this.onRefused(new HostRefusedError(parsed.data.owner))
    if (parsed.data.type === 'hello' && this.said === null) {
      this.said = parsed.data
      this.onHello()
    }
    if (this.early) this.early.push(parsed.data)
    else this.handlers.reply(parsed.data)
  }
}
