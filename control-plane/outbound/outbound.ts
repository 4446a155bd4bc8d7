import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { World } from '../../shared/lib/world.ts'
import { answerOf } from './answer.ts'
import { destinationOf, type Destination } from './destination.ts'
import { connectTo, exchange, type Sent } from './exchange.ts'
import { hostOf } from './host-name.ts'
import { OutboundError } from './outbound-error.ts'
import { placeNamedBy, sentNext } from './redirect.ts'
import { resolveHost, type ResolveHost } from './resolve-host.ts'

// The one client for requests outside: every request to an address that somebody other than the operator names. It asks over https only, at public
// addresses only, of which it resolves the names once; it checks each redirect again, sends no credential to another origin, and
// ends at limits of time and size. Hosts that the operator allows may be private and without TLS.
//
// Proxies that the environment names are not used: a proxy would resolve the name anew.

export interface OutboundLimits {
  /** The bytes of the body of the answer. */
  bytes?: number
  /** The time from the call to the end of the body, in ms. */
  timeoutMs?: number
  /** The number of redirects that are followed one after another. */
  redirects?: number
}

export interface Outbound {
  /**
   * Asks like the global `fetch`, whose errors it throws where the caller's own arguments or signal are the cause; all else is
   * OutboundError, also while the body is read. The body of the request is sent whole; the answer's comes as it is read.
   */
  fetch(input: string | URL | Request, init?: RequestInit & { limits?: OutboundLimits }): Promise<Response>
  /** The addresses at which the host of a URL may be asked, for programs that are told an address. Fails with OutboundError. */
  resolve(url: URL, options?: { signal?: AbortSignal; timeoutMs?: number }): Promise<Destination>
  /**
   * Sends one request as it is, and returns the head of its answer. Whoever calls follows no redirect, and sets limits of size and, by the
   * signal, of time. Fails with OutboundError, or with the reason of the signal.
   */
  send(url: URL, sent: Sent, signal: AbortSignal): Promise<IncomingMessage>
  /** A connection for bytes that nobody here reads. `timeoutMs`: for its beginning. Fails with OutboundError. */
  connect(to: { host: string; port: number }, options?: { timeoutMs?: number }): Promise<Socket>
}

export interface OutboundOptions {
  /** The hosts as `readHost` gives them. */
  allowHosts: readonly string[]
  world: Pick<World, 'after'>
  /** The resolver in place of DNS, for tests. */
  resolveHost?: ResolveHost
  /** The certificates that are trusted in place of the machine's, for tests. */
  ca?: string
}

const defaults = {
  bytes: 10 * 1024 * 1024,
  timeoutMs: 30_000,
  redirects: 5,
} as const satisfies Required<OutboundLimits>

export function createOutbound({ allowHosts, world, ca, ...options }: OutboundOptions): Outbound {
  const rules = { allowHosts: new Set(allowHosts), resolveHost: options.resolveHost ?? resolveHost }

  return {
    async fetch(input, { limits = {}, ...init } = {}) {
      const { bytes, timeoutMs, redirects } = { ...defaults, ...limits }
      const ending = startEnding(world, timeoutMs, init.signal ?? (input instanceof Request ? input.signal : null))
      const { signal } = ending
      try {
        let url = readUrl(input instanceof Request ? input.url : input)
        const request = new Request(input, init)
        let sent = await sentBy(request)
        for (let hops = 0; ; hops++) {
          signal.throwIfAborted()
          const message = await exchange(await destinationOf(url, rules, signal), sent, { signal, ca })
          try {
            const next =
              request.redirect === 'manual'
                ? null
                : placeNamedBy(message.statusCode ?? 0, message.headers.location, url)
            if (next === null) {
              const isRedirected = hops > 0
              return answerOf(message, { url, isRedirected, maxBytes: bytes, signal, onEnd: ending.cancel })
            }
            if (hops >= redirects || request.redirect === 'error')
              throw new OutboundError('too_many_redirects', `${url.host} redirects further than is followed`)
            sent = sentNext(sent, message.statusCode ?? 0, { from: url, to: next })
            url = next
            message.destroy()
          } catch (error) {
            message.destroy()
            throw error
          }
        }
      } catch (error) {
        ending.cancel()
        throw error
      }
    },

    async resolve(url, { signal = null, timeoutMs = defaults.timeoutMs } = {}) {
      const ending = startEnding(world, timeoutMs, signal)
      try {
        return await destinationOf(url, rules, ending.signal)
      } finally {
        ending.cancel()
      }
    },

    async send(url, sent, signal) {
      return exchange(await destinationOf(url, rules, signal), sent, { signal, ca })
    },

    async connect({ host, port }, { timeoutMs = defaults.timeoutMs } = {}) {
      const ending = startEnding(world, timeoutMs, null)
      try {
        // The scheme of the URL asks for a public address, or for a host that the operator allows.
        const url = URL.parse(`https://${host.includes(':') ? `[${host}]` : host}:${port}/`)
        if (url === null) throw new OutboundError('refused_address', 'this is no address')
        // Other ports would lead to mail and the like.
        if (port !== 443 && !rules.allowHosts.has(hostOf(url)))
          throw new OutboundError('refused_address', `${host} is connected to at its port 443 alone`)
        return await connectTo(await destinationOf(url, rules, ending.signal), ending.signal)
      } finally {
        ending.cancel()
      }
    },
  }
}

/** Aborts when the time is over or the caller leaves, until it is cancelled. */
function startEnding(world: Pick<World, 'after'>, timeoutMs: number, caller: AbortSignal | null) {
  const ending = new AbortController()
  const leave = () => ending.abort(caller?.reason)
  if (caller?.aborted === true) leave()
  caller?.addEventListener('abort', leave, { once: true })
  const stopTimer = world.after(timeoutMs, () =>
    ending.abort(new OutboundError('timed_out', `the answer took longer than ${timeoutMs / 1_000} s`)),
  )
  const cancel = () => {
    stopTimer()
    caller?.removeEventListener('abort', leave)
  }
  return { signal: ending.signal, cancel }
}

function readUrl(text: string | URL): URL {
  const url = URL.parse(String(text))
  if (url === null) throw new OutboundError('refused_address', 'this is no address')
  if (url.username !== '' || url.password !== '')
    throw new OutboundError('refused_address', 'an address with a name or password before its host is not asked')
  return url
}

/** These headers are of the connection, not of the request: they are set here, or not at all. */
const ofConnection =
  /^(?:host|connection|keep-alive|content-length|transfer-encoding|te|trailer|upgrade|expect|proxy-.*)$/

async function sentBy(request: Request): Promise<Sent & { body: Buffer | null }> {
  const body = request.body === null ? null : Buffer.from(await request.arrayBuffer())
  const headers: OutgoingHttpHeaders = { 'user-agent': 'svc-server', accept: '*/*' }
  for (const [name, value] of request.headers) if (!ofConnection.test(name)) headers[name] = value
  headers['accept-encoding'] = 'identity'
  if (body !== null) headers['content-length'] = body.length
  return { method: request.method, headers, body }
}
