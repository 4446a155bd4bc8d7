import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type { World } from '../../shared/lib/world.ts'
import { answerUnreadable } from './unreadable.ts'

/**
 * The time that an idle connection is kept. It is longer than proxies keep theirs (60 s by default): otherwise one sometimes sends
 * a request over a connection that is just being closed here.
 */
const keepAliveMs = 72_000

/** Other upgrade requests than these are ignored, which is allowed: clients that speak HTTP/2 send one with each request. */
export function createHttpServer({
  takesUpgrade,
  world,
  stopping,
}: {
  takesUpgrade: (request: IncomingMessage) => boolean
  world: World
  /** Aborted when the server begins to stop, before it is closed. */
  stopping: AbortSignal
}): Server {
  const server = createServer({
    shouldUpgradeCallback: takesUpgrade,
    keepAliveTimeout: keepAliveMs,
    // Node would answer without an envelope and a Request-Id; `refuseUnserved` refuses it instead.
    requireHostHeader: false,
  })
  // So would it here.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  answerUnreadable(server, world)
  endWhenAnswered(server, stopping)
  return server
}

/**
 * From the abort on, a connection ends as soon as no answer is under way on it. Node's own way keeps one open for
 * `keepAliveMs` that was not idle when the server began to stop, as that of a stream which is ended then, and cuts off an
 * answer that is written but not yet taken.
 */
function endWhenAnswered(server: Server, stopping: AbortSignal): void {
  /** The answers under way on each. */
  const connections = new Map<Socket, number>()
  const answering = (socket: Socket, change: number) => {
    const before = connections.get(socket)
    if (before === undefined) return
    connections.set(socket, before + change)
    if (stopping.aborted && before + change === 0) socket.destroySoon()
  }
  server.on('connection', (socket: Socket) => {
    connections.set(socket, 0)
    socket.once('close', () => connections.delete(socket))
  })
  server.on('upgrade', ({ socket }) => connections.delete(socket))
  server.on('request', ({ socket }, response) => {
    answering(socket, 1)
    // The client is told, and sends no other request over it.
    if (stopping.aborted) response.shouldKeepAlive = false
    response.once('close', () => answering(socket, -1))
  })
  server.closeIdleConnections = () => {}
  stopping.addEventListener('abort', () => {
    for (const [socket, answers] of connections) if (answers === 0) socket.destroySoon()
  })
}
