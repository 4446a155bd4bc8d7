import { certificateTrouble } from '../../shared/lib/certificate-trouble.ts'
import { request as requestPlain, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import { request as requestTls } from 'node:https'
import { connect, isIP, isIPv4, type LookupFunction, type Socket } from 'node:net'
import { pipeline, type Readable } from 'node:stream'
import type { Destination } from './destination.ts'
import { OutboundError } from './outbound-error.ts'

// Sends a request and reads the head of its answer, over a connection of its own to an address that was checked.

/** The most bytes of the head of an answer, and of what follows a body. */
const headBytes = 32 * 1024

export interface Sent {
  method: string
  headers: OutgoingHttpHeaders
  /** The body; a stream is sent as it comes. */
  body: Buffer | Readable | null
  /** Called when the host is reached, with TLS where that is spoken, and may now take its time. */
  onConnected?: () => void
}

export interface ExchangeOptions {
  signal: AbortSignal
  /** Certificates that are trusted in place of those of the machine. */
  ca?: string | undefined
}

/** Rejects with OutboundError, or with the reason of the signal. */
export function exchange(to: Destination, sent: Sent, { signal, ca }: ExchangeOptions): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const isTls = to.url.protocol === 'https:'
  const request = (isTls ? requestTls : requestPlain)({
    host: to.host,
    port: to.port,
    path: to.url.pathname + to.url.search,
    method: sent.method,
    headers: sent.headers,
    // A new agent keeps no connection, and goes through no proxy, whatever the environment says.
    agent: false,
    lookup: pinnedTo(to.addresses),
    maxHeaderSize: headBytes,
    insecureHTTPParser: false,
    signal,
    ...(isTls && { rejectUnauthorized: true, ca, ...(isIP(to.host) === 0 && { servername: to.host }) }),
  })
  request.once('socket', (socket) => {
    if (sent.onConnected !== undefined) socket.once(isTls ? 'secureConnect' : 'connect', sent.onConnected)
  })
  request.once('response', resolve)
  request.on('error', (error: NodeJS.ErrnoException) => reject(outboundErrorOf(error, to.host, signal)))
  // The request tells of what breaks off on the way, too.
  if (sent.body === null || Buffer.isBuffer(sent.body)) request.end(sent.body ?? undefined)
  else pipeline(sent.body, request, () => undefined)
  return promise
}

/** A connection to one of the addresses that were checked. Rejects with OutboundError, or with the reason of the signal. */
export function connectTo({ host, port, addresses }: Destination, signal: AbortSignal): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const socket = connect({ host, port, lookup: pinnedTo(addresses), allowHalfOpen: true })
  const leave = () => socket.destroy(signal.reason as Error)
  if (signal.aborted) leave()
  signal.addEventListener('abort', leave, { once: true })
  socket.once('connect', () => {
    signal.removeEventListener('abort', leave)
    resolve(socket)
  })
  socket.on('error', (error) => {
    signal.removeEventListener('abort', leave)
    reject(outboundErrorOf(error, host, signal))
  })
  return promise
}

/** Gives the addresses that were checked, whatever the name means by now. */
function pinnedTo(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIPv4(address) ? 4 : 6 }))
  return (_host, options, callback) => {
    if (options.all === true) callback(null, all)
    else callback(null, all[0]!.address, all[0]!.family)
  }
}

function unreachable(host: string, error: Error): string {
  const certificate = certificateTrouble(error)
  return `${host} could not be reached${certificate === null ? ', or its answer broke off' : `: ${certificate}`}`
}

export function outboundErrorOf(error: NodeJS.ErrnoException, host: string, signal: AbortSignal): Error {
  if (signal.aborted) return signal.reason as Error
  if (error.code === 'HPE_HEADER_OVERFLOW')
    return new OutboundError('too_large', `the head of the answer of ${host} is too large`, { cause: error })
  return new OutboundError('unreachable', unreachable(host, error), { cause: error })
}
