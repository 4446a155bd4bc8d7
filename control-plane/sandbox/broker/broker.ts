import { chmodSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Log } from '../../process/log.ts'

export interface BrokerOptions {
  sandboxId: string
  http: Server
  log: Log
}

/** Of one sandbox, at once. */
const mostConnections = 256
const headerMs = 20_000

/**
 * The one way out of a sandbox: a unix socket that it alone has. What it does not let through goes nowhere: the sandbox has no network.
 * Today that is the API and the link of this server.
 */
export class Broker {
  private readonly options: BrokerOptions
  private readonly server: Server

  constructor(options: BrokerOptions) {
    this.options = options
    const { http } = options
    this.server = createServer({ headersTimeout: headerMs, requireHostHeader: false, maxHeaderSize: 32 * 1024 })
    this.server.maxConnections = mostConnections
    this.server.on('connection', (socket) => {
      // Limits by address are this sandbox's own.
      Object.defineProperty(socket, 'remoteAddress', { value: options.sandboxId })
    })
    this.server.on('request', (request, response) => {
      if (!this.mayPass(request)) {
        response.writeHead(403, { 'content-type': 'text/plain', connection: 'close' })
        return void response.end('The broker of this sandbox does not let this through.\n')
      }
      http.emit('request', request, response)
    })
    this.server.on('upgrade', (request, socket, head) => {
      if (!this.mayPass(request)) return refuse(socket)
      http.emit('upgrade', request, socket, head)
    })
    this.server.on('connect', (_request, socket) => refuse(socket))
    this.server.on('clientError', (_error, socket) => refuse(socket))
  }

  async listen(path: string): Promise<void> {
    rmSync(path, { force: true })
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject)
      this.server.listen(path, resolve)
    })
    this.server.on('error', (error) => this.options.log.warn({ err: error }, 'the broker of a sandbox has trouble'))
    chmodSync(path, 0o666)
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()))
    this.server.closeAllConnections()
    await closed
  }

  /** Only this server, and nothing that a browser or a proxy would say of itself. */
  private mayPass(request: IncomingMessage): boolean {
    for (const name of ['x-forwarded-for', 'x-forwarded-proto', 'forwarded', 'cookie']) delete request.headers[name]
    return request.url?.startsWith('/api/') === true
  }
}

function refuse(socket: Duplex): void {
  socket.on('error', () => undefined)
  socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n')
}
