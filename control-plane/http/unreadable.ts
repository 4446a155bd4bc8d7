import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { ApiError } from '../../shared/api/errors.ts'
import type { World } from '../../shared/lib/world.ts'

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
export function answerUnreadable(server: Server, world: World): void {
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
    // It is the body that cannot be read, for which the route waits: it finds its answer given.
    if (open !== null) return void open.writeHead(status, headers).end(body)
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
    socket.end([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', body].join('\r\n'))
  })
}
