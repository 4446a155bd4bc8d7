import { chmodSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { isAlive, type ProcessIdentity } from '../../process/identity.ts'
import { jsonLine, jsonLineReader, parseJsonText } from '../../../shared/lib/lines.ts'
import { hostRequest, type HostReply, type HostRequest } from './protocol.ts'
import { messageOf, type HostLog } from '../../log/host-log.ts'
import { makePrivateFolder } from './record.ts'

export interface HostSocketOptions {
  path: string
  log: HostLog
  /** Returns what a daemon is told at once when it connects. */
  hello(): HostReply
  onConnect(): void
  onRequest(request: HostRequest): void
  onDisconnect(): void
}

/** An assignment holds a prompt and AGENT.md; nothing else comes near. */
const maxLineBytes = 32 * 1024 * 1024
/** The time that a daemon may take to say who it is, where that matters. */
const unsaidMs = 2_000
/** A daemon that reads nothing (stopped, busy) gets no more notices than this; they are coalesced. */
const maxQueuedBytes = 1024 * 1024

/**
 * The host's side of the unix socket: one daemon at a time. While the process of the daemon that has this host lives, only
 * that one may connect again; else a newer connection takes the place of the one before. The host reads line by line and
 * checks each; a line that is no request is logged and ignored.
 */
export class HostSocket {
  readonly #options: HostSocketOptions
  readonly #server: Server
  #daemon: Socket | null = null
  /** The daemon that has this host; null: one that did not say who it is. */
  #owner: ProcessIdentity | null = null
  #spooledSeq: number | null = null
  #isSpooledScheduled = false

  constructor(options: HostSocketOptions) {
    this.#options = options
    this.#server = createServer((socket) => this.#accept(socket))
  }

  async listen(): Promise<void> {
    makePrivateFolder(dirname(this.#options.path))
    rmSync(this.#options.path, { force: true })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#server.once('error', reject).listen(this.#options.path, resolve)
    await promise
    this.#server.on('error', (error) => this.#options.log('socket_error', { error: messageOf(error) }))
    chmodSync(this.#options.path, 0o600)
  }

  reply(message: HostReply): void {
    this.#daemon?.write(jsonLine(message))
  }

  /** Tells that rows up to `lastSeq` are on disk. Only the newest number matters, so a flood of them becomes one notice per turn. */
  spooled(lastSeq: number): void {
    this.#spooledSeq = lastSeq
    if (this.#isSpooledScheduled) return
    this.#isSpooledScheduled = true
    setImmediate(() => {
      this.#isSpooledScheduled = false
      this.#sendSpooled()
    })
  }

  /** Sends what is queued and closes; waits a second for a daemon that does not read. */
  async close(): Promise<void> {
    this.#sendSpooled()
    this.#server.close()
    const daemon = this.#daemon
    if (!daemon) return
    const { promise, resolve } = Promise.withResolvers<void>()
    daemon.once('close', resolve)
    daemon.end()
    setTimeout(resolve, 1_000).unref()
    await promise
    daemon.destroy()
  }

  #sendSpooled(): void {
    if (this.#spooledSeq === null || !this.#daemon || this.#daemon.writableLength > maxQueuedBytes) return
    this.reply({ type: 'spooled', lastSeq: this.#spooledSeq })
    this.#spooledSeq = null
  }

  #accept(socket: Socket): void {
    socket.on('error', () => {})
    readLines(socket, (line) => {
      const request = this.#parse(line)
      if (this.#daemon === socket) {
        if (request?.type === 'owner') this.#owner = request
        else if (request) this.#options.onRequest(request)
      } else if (request?.type === 'owner' && this.#mayTake(request)) {
        this.#take(socket)
        this.#owner = request
      } else this.#refuse(socket)
    })
    if (this.#mayTake(null)) return this.#take(socket)
    const unsaid = setTimeout(() => this.#daemon !== socket && this.#refuse(socket), unsaidMs)
    socket.once('close', () => clearTimeout(unsaid))
  }

  #mayTake(daemon: ProcessIdentity | null): boolean {
    const owner = this.#owner
    if (owner === null || (owner.pid === daemon?.pid && owner.startTime === daemon.startTime)) return true
    try {
      return !isAlive(owner)
    } catch {
      // No file is left to look with.
      return false
    }
  }

  #take(socket: Socket): void {
    const before = this.#daemon
    this.#daemon = socket
    this.#owner = null
    before?.destroy()
    socket.on('drain', () => this.#sendSpooled())
    socket.on('close', () => {
      if (this.#daemon !== socket) return
      this.#daemon = null
      this.#options.onDisconnect()
    })
    this.reply(this.#options.hello())
    this.#options.onConnect()
  }

  #refuse(socket: Socket): void {
    if (socket.destroyed || socket.writableEnded) return
    const refused: HostReply = { type: 'refused', owner: this.#owner?.pid ?? 0 }
    socket.end(jsonLine(refused))
  }

  #parse(line: string): HostRequest | null {
    const value = parseJsonText(line)
    if (value === undefined) {
      this.#options.log('request_unreadable')
      return null
    }
    const request = hostRequest.safeParse(value)
    if (request.success) return request.data
    // The text of a request is never logged: it may hold the token.
    this.#options.log('request_unknown', { issue: request.error.issues[0]?.path.join('.') ?? null })
    return null
  }
}

function readLines(socket: Socket, onLine: (line: string) => void): void {
  const read = jsonLineReader(maxLineBytes)
  socket.on('data', (chunk: Buffer) => {
    const { lines, isTooLong } = read(chunk)
    for (const line of lines) if (line !== '') onLine(line)
    if (isTooLong) socket.destroy()
  })
}
