import { createServer, type IncomingMessage, type Server, STATUS_CODES, type ServerResponse } from 'node:http'
import { Socket, type AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { World } from '../../shared/lib/world.ts'
import { ApiError } from '../../shared/api/errors.ts'

/**
 * The time that an idle connection is kept. It is longer than proxies keep theirs (60 s by default): otherwise one sometimes sends
 * a request over a connection that is just being closed here.
 */
const keepAliveMs = 72_000

/**
 * Creates the server. It ignores other upgrade requests than these, which is allowed: clients that speak HTTP/2 send one with each
 * request.
 */
export function createHttpServer({
  takesUpgrade,
  world,
  stopping,
  isLeaving = () => false,
}: {
  takesUpgrade: (request: IncomingMessage) => boolean
  world: World
  /** Aborted when the server begins to stop, before it is closed. */
  stopping: AbortSignal
  /** True from the moment when clients are to go elsewhere, which is some time before it is closed. */
  isLeaving?: () => boolean
}): Server {
  const server = createServer({
    shouldUpgradeCallback: takesUpgrade,
    keepAliveTimeout: keepAliveMs,
    // Node would answer without an envelope and a Request-Id; `refuseUnserved` refuses it instead.
    requireHostHeader: false,
  })
  // Node would answer an unknown `Expect` without an envelope, too.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  answerUnreadable(server, world)
  endWhenAnswered(server, { stopping, isLeaving })
  return server
}

/**
 * Ends a connection, from the abort on, as soon as no answer is under way on it. Node's own way keeps one open for `keepAliveMs` that was
 * not idle when the server began to stop, as that of a stream which is ended then, and cuts off an answer that is written but not yet
 * taken.
 */
function endWhenAnswered(
  server: Server,
  { stopping, isLeaving }: { stopping: AbortSignal; isLeaving: () => boolean },
): void {
  /** The answers under way on each. */
  const connections = new Map<Socket, number>()
  const answering = (socket: Socket, change: number) => {
    const before = connections.get(socket)
    if (before === undefined) return
    connections.set(socket, before + change)
    if (stopping.aborted && before + change === 0) socket.destroySoon()
  }
  server.on('connection', (socket: Duplex) => {
    // Connections in memory (own-requests.ts) end with their one answer.
    if (!(socket instanceof Socket)) return
    connections.set(socket, 0)
    socket.once('close', () => connections.delete(socket))
  })
  server.on('upgrade', ({ socket }) => connections.delete(socket))
  server.on('request', ({ socket }, response) => {
    answering(socket, 1)
    // The client is told, and sends no other request over it.
    if (stopping.aborted || isLeaving()) response.shouldKeepAlive = false
    response.once('close', () => answering(socket, -1))
  })
  server.closeIdleConnections = () => {}
  stopping.addEventListener('abort', () => {
    for (const [socket, answers] of connections) if (answers === 0) socket.destroySoon()
  })
}

/**
 * Connections that may wait to be accepted. The system silently drops more, which a device notices only after seconds;
 * with the usual 511 a server that comes back would lose its devices.
 */
const backlog = 4_096

export async function listenOn(server: Server, { host, port }: { host: string; port: number }): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  return server.address() as AddressInfo
}

const refusals: Readonly<Record<string, { status: number; message: string }>> = {
  HPE_HEADER_OVERFLOW: { status: 431, message: 'The address and the headers are longer than 16 KiB.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'The request took too long to arrive.' },
}
const lastAnswer = Symbol('the last answer of a connection')
type Answering = Duplex & { [lastAnswer]?: ServerResponse }

const notHttp = { status: 400, message: 'This is not a request that can be read.' }

/** Refuses a request that HTTP/1.1 does not allow, or one that expects what this server does not do. */
export function refuseUnserved({ httpVersion, headers: { host, expect } }: IncomingMessage): void {
  if (httpVersion === '1.1' && host === undefined)
    throw new ApiError('http_exception', { status: 400, message: 'A request of HTTP/1.1 needs a Host header.' })
  if (expect !== undefined && !/^100-continue$/i.test(expect))
    throw new ApiError('http_exception', { status: 417, message: 'Of expectations only 100-continue is met.' })
}

/** Answers bytes that are no request, and so reach no route, with the same envelope as all errors. */
function answerUnreadable(server: Server, world: World): void {
  server.on('request', ({ socket }: { socket: Answering }, response) => {
    socket[lastAnswer] = response
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const last = (socket as Answering)[lastAnswer]
    const open = last?.closed === false ? last : null
    // An answer that has begun would be broken by a second one.
    if (error.code === 'ECONNRESET' || !socket.writable || open?.headersSent === true) {
      socket.destroy(error)
      return
    }
    const { status, message } = refusals[error.code ?? ''] ?? notHttp
    const requestId = world.id('req_')
    const body = JSON.stringify(new ApiError('http_exception', { status, message }).toEnvelope(requestId))
    const headers = {
      'Request-Id': requestId,
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': String(Buffer.byteLength(body)),
      Connection: 'close',
    }
    // The body cannot be read, and the route waits for it: the route finds that it was answered.
    if (open !== null) return void open.writeHead(status, headers).end(body)
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
    socket.end([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', body].join('\r\n'))
  })
}

/** The address under which a server that listens on this host is reached from its own machine. */
export function localUrlOf(host: string, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return `http://${name}:${port}`
}
