import type { SandboxId } from '../../../shared/lib/ids.ts'
import { chmodSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { World } from '../../../shared/lib/world.ts'
import { modelPath, modelProviders } from '../../../shared/runs/brokered.ts'
import { repoPath, repoPaths } from '../../../shared/runs/repo.ts'
import { otherHosts } from '../../../shared/runs/network.ts'
import { hostOf, hostWithPort } from '../../outbound/host-name.ts'
import type { Outbound } from '../../outbound/outbound.ts'
import type { Log } from '../../process/log.ts'
import type { BrokerRequest } from './forward.ts'
import { gitLimits, GitRequests, type GitRequestLimits } from './git-requests.ts'
import { HostRequests, hostLimits, isNamed, type HostLimits } from './host-requests.ts'
import { Ledger, type LedgerOptions } from './ledger.ts'
import { mcpRequestLimits, McpRequests, serverIn, type McpLimits } from './mcp-requests.ts'
import { modelLimits, ModelRequests, type ModelLimits } from './model-requests.ts'
import type { Permit } from './permits.ts'
import { tunnelLimits, Tunnels, type TunnelLimits } from './tunnels.ts'

export interface BrokerOptions {
  sandboxId: SandboxId
  http: Server
  world: World
  log: Log
  outbound: Pick<Outbound, 'send' | 'connect'>
  /** Finds what the sandbox's run may reach; null: nothing any more. */
  permit(): Promise<Permit | null>
  record: LedgerOptions['record']
  /** Limits that tests set. */
  limits?: {
    headerMs?: number
    models?: Partial<ModelLimits>
    git?: Partial<GitRequestLimits>
    hosts?: Partial<HostLimits>
    mcp?: Partial<McpLimits>
    tunnels?: Partial<TunnelLimits>
  }
}

/** The connections of one sandbox that may be open at once. */
const mostConnections = 256
const headerMs = 20_000
/** The broker asks at most this often what a run may reach. */
const permitMs = 1_000

/**
 * The one way out of a sandbox: a unix socket that it alone has. What it does not let through goes nowhere: the sandbox has no network.
 * It lets through the API and the link of this server, the provider of the run's model, the run's repository and its MCP servers, each at a
 * path of its own and with a credential that it adds, requests to hosts that secrets of the run name, and connections to hosts that the workspace names. All
 * else is refused, whatever its form.
 */
export class Broker {
  private readonly options: BrokerOptions
  private readonly server: Server
  private readonly ledger: Ledger
  private readonly models: ModelRequests
  private readonly git: GitRequests
  private readonly hosts: HostRequests
  private readonly mcp: McpRequests
  private readonly tunnels: Tunnels
  /** Reads what comes through connections to hosts that secrets name, in place of these hosts. */
  private readonly inner: Server
  /** The addresses to which these connections lead. */
  private readonly leading = new WeakMap<Socket, URL>()
  /** Every open connection: the HTTP server forgets those that became a link or a tunnel, and waits for them when it closes. */
  private readonly sockets = new Set<Socket>()
  private readonly watched = new Set<Server>()
  private permitted: { at: number; permit: Promise<Permit | null> } | null = null

  constructor(options: BrokerOptions) {
    this.options = options
    const { world, limits = {} } = options
    this.ledger = new Ledger(options)
    this.models = new ModelRequests({ ...options, limits: { ...modelLimits, ...limits.models } })
    this.git = new GitRequests({ ...options, limits: { ...gitLimits, ...limits.git } })
    this.hosts = new HostRequests({ ...options, limits: { ...hostLimits, ...limits.hosts } })
    this.mcp = new McpRequests({
      ...options,
      permit: () => this.permit(),
      limits: { ...mcpRequestLimits, ...limits.mcp },
    })
    this.tunnels = new Tunnels({ world, outbound: options.outbound, limits: { ...tunnelLimits, ...limits.tunnels } })
    this.server = this.reader(limits.headerMs ?? headerMs)
    this.inner = this.reader(limits.headerMs ?? headerMs)
    this.inner.on('request', (request, response) => this.run(this.askHost({ request, response }), response))
    for (const event of ['upgrade', 'connect'] as const)
      this.inner.on(event, (request, socket) => this.turnAway(request, socket))
    this.server.maxConnections = mostConnections
    this.server.on('connection', (socket) => {
      // Limits by address are this sandbox's own.
      Object.defineProperty(socket, 'remoteAddress', { value: options.sandboxId })
      this.sockets.add(socket)
      socket.once('close', () => this.sockets.delete(socket))
    })
    this.server.on('request', (request, response) => this.answer(request, response))
    this.server.on('upgrade', (request, socket, head) => this.upgrade(request, socket, head))
    this.server.on('connect', (request, socket, head) => void this.connect(request, socket, head))
  }

  private reader(headersTimeout: number): Server {
    const server = createServer({
      headersTimeout,
      // The server has no limit, since each kind of request has one of its own: a push may take longer than Node's five minutes.
      requestTimeout: 0,
      connectionsCheckingInterval: Math.min(headersTimeout, 5_000),
      requireHostHeader: false,
      insecureHTTPParser: false,
      maxHeaderSize: 32 * 1024,
    })
    server.on('clientError', ({ code = '' }: NodeJS.ErrnoException, socket) => {
      // An answer that was cut off is counted by who cut it.
      const isUnreadable = /^(?:HPE|ERR_HTTP)_/.test(code)
      if (isUnreadable && socket instanceof Socket) this.ledger.count(otherHosts.unreadable, 'refused', { socket })
      refuse(socket)
    })
    return server
  }

  async listen(path: string): Promise<void> {
    rmSync(path, { force: true })
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject)
      // One that is closed meanwhile never says that it listens.
      this.server.once('close', () => reject(new Error('the broker of the sandbox was closed before it listened')))
      this.server.listen(path, resolve)
    })
    this.watched.add(this.server)
    this.server.on('error', (error) => this.options.log.warn({ err: error }, 'the broker of a sandbox has trouble'))
    chmodSync(path, 0o666)
  }

  /** A connection that was accepted elsewhere. */
  take(socket: Socket): void {
    if (this.sockets.size >= mostConnections) return void socket.destroy()
    this.hand(socket, this.server)
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()))
    for (const socket of this.sockets) socket.destroy()
    this.inner.close()
    this.mcp.close()
    await closed
    await this.ledger.write()
  }

  private answer(request: IncomingMessage, response: ServerResponse): void {
    const { http } = this.options
    const { socket } = request
    if (isAbsolute(request.url)) return this.run(this.askHost({ request, response }), response)
    if (mayPass(request)) {
      response.once('close', () => this.ledger.count(otherHosts.server, 'allowed', { socket }))
      return void http.emit('request', request, response)
    }
    this.run(this.ask({ request, response }), response)
  }

  /** Answers a request for one of the broker's own paths. */
  private async ask(asked: BrokerRequest): Promise<void> {
    const { request, response } = asked
    const { url = '' } = request
    const provider = modelProviders.find((name) => url.startsWith(`${modelPath(name)}/`))
    const name = serverIn(url)
    if (provider !== undefined) return this.askModel(asked, provider)
    if (name !== null) return this.askServer(asked, name)
    if (url.startsWith(repoPaths)) return this.askGit(asked)
    this.refuseUnread(request, response)
  }

  private refuseUnread({ socket }: IncomingMessage, response: ServerResponse): void {
    this.ledger.count(otherHosts.unreadable, 'refused', { socket })
    deny(response)
  }

  private run(asking: Promise<void>, response: ServerResponse): void {
    asking.catch((error: unknown) => {
      this.options.log.error({ err: error }, 'the broker of a sandbox failed at a request')
      response.destroy()
    })
  }

  private async askModel(
    { request, response }: BrokerRequest,
    provider: (typeof modelProviders)[number],
  ): Promise<void> {
    const { socket } = request
    const model = (await this.permit())?.model ?? null
    if (model?.provider !== provider) return this.refuseUnread(request, response)
    const target = request.url!.slice(modelPath(provider).length)
    const decision = await this.models.pass({ request, response, target }, model)
    this.ledger.count(hostOf(new URL(model.url)), decision, { socket })
  }

  private async askServer({ request, response }: BrokerRequest, name: string): Promise<void> {
    const { socket } = request
    const server = (await this.permit())?.servers.find((one) => one.name === name)
    if (server === undefined) return this.refuseUnread(request, response)
    const decision = await this.mcp.pass({ request, response }, server)
    this.ledger.count(server.host ?? otherHosts.unreadable, decision, { socket })
  }

  private async askGit({ request, response }: BrokerRequest): Promise<void> {
    const { socket } = request
    const repo = (await this.permit())?.repo ?? null
    const path = repo === null ? null : repoPath(repo.id)
    if (repo === null || !request.url?.startsWith(`${path}/`)) return this.refuseUnread(request, response)
    const decision = await this.git.pass({ request, response, target: request.url.slice(path!.length) }, repo)
    this.ledger.count(hostOf(new URL(repo.url)), decision, { socket })
  }

  /** Answers a request in the absolute form, which programs send to a proxy, or one in a connection that leads to a host. */
  private async askHost({ request, response }: BrokerRequest): Promise<void> {
    const { socket } = request
    const leading = this.leading.get(socket)
    const target = leading === undefined ? request.url! : `http://${leading.host}${request.url}`
    const secrets = (await this.permit())?.secrets ?? []
    const decision = await this.hosts.pass({ request, response, target }, secrets)
    this.ledger.count(leading === undefined ? hostIn(target) : hostOf(leading), decision, { socket })
  }

  private turnAway(request: IncomingMessage, socket: Duplex): void {
    const host = hostIn(request.url) || otherHosts.unreadable
    if (socket instanceof Socket) this.ledger.count(host, 'refused', { socket })
    refuse(socket)
  }

  private upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const isAllowed = mayPass(request)
    socket.once('close', () => {
      const host = isAllowed ? otherHosts.server : hostIn(request.url)
      if (socket instanceof Socket) this.ledger.count(host, isAllowed ? 'allowed' : 'refused', { socket })
    })
    if (!isAllowed) return refuse(socket)
    this.options.http.emit('upgrade', request, socket, head)
  }

  private async connect(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => undefined)
    if (!(socket instanceof Socket)) return void socket.destroy()
    try {
      const { egress, secrets } = (await this.permit()) ?? nothing
      const leading = plainAddress(request.url)
      if (leading !== null && isNamed(hostWithPort(leading), secrets) && !egress.has(hostWithPort(leading)))
        return this.lead({ socket, head }, leading)
      const { host, decision } = await this.tunnels.pass({ request, socket, head }, { egress, secrets })
      this.ledger.count(host, decision, { socket })
    } catch (error) {
      this.options.log.error({ err: error }, 'the broker of a sandbox failed at a connection')
      socket.destroy()
    }
  }

  /**
   * Opens a connection in which plain HTTP is spoken. Some programs, such as `fetch` of Node, ask a proxy for a connection in that case,
   * too.
   */
  private lead({ socket, head }: { socket: Socket; head: Buffer }, address: URL): void {
    this.leading.set(socket, address)
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
    if (head.length > 0) socket.unshift(head)
    this.hand(socket, this.inner)
  }

  private hand(socket: Socket, server: Server): void {
    // Node begins to watch for slow headers when a server listens, which this one does not.
    if (!this.watched.has(server)) server.emit('listening')
    this.watched.add(server)
    server.emit('connection', socket)
    socket.resume()
  }

  private permit(): Promise<Permit | null> {
    const now = this.options.world.monotonic()
    if (this.permitted === null || now - this.permitted.at >= permitMs) {
      const permit = this.options.permit()
      this.permitted = { at: now, permit }
      permit.catch(() => (this.permitted = null))
    }
    return this.permitted.permit
  }
}

const nothing: Pick<Permit, 'egress' | 'secrets'> = { egress: new Set(), secrets: [] }

const isAbsolute = (target = ''): boolean => /^https?:/i.test(target)

/** Returns the address to which a connection leads in which plain HTTP may be spoken; null: it is for TLS, or for nothing. */
function plainAddress(authority = ''): URL | null {
  const url = /^[\w.-]{1,253}:\d{1,5}$/.test(authority) ? URL.parse(`http://${authority}`) : null
  return url === null || url.port === '443' ? null : url
}

/** Tells whether the request is for this server's API, and removes headers that a browser or a proxy would add. */
function mayPass(request: IncomingMessage): boolean {
  for (const name of ['x-forwarded-for', 'x-forwarded-proto', 'forwarded', 'cookie']) delete request.headers[name]
  return request.url?.startsWith('/api/') === true
}

/** The host of a request in the absolute form, which programs send to a proxy; empty: it names none. */
function hostIn(target = ''): string {
  const url = isAbsolute(target) ? URL.parse(target) : null
  return url === null ? '' : hostOf(url)
}

function deny(response: ServerResponse): void {
  response.writeHead(403, { 'content-type': 'text/plain', connection: 'close' })
  response.end('The broker of this sandbox does not let this through.\n')
}

function refuse(socket: Duplex): void {
  socket.on('error', () => undefined)
  socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n')
}
