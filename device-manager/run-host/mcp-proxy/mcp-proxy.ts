import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream'
import { asksForMore, headersBack, headersOn, moreIsAsked } from '../../../shared/lib/mcp-headers.ts'
import type { Redactor } from '../../../shared/lib/redact.ts'
import {
  headAsksForSkills,
  noMessage,
  noSkills,
  scannedForSkills,
  whyReadOtherwise,
} from '../../../shared/runs/server-skills.ts'
import { messageOf, type HostLog } from '../../log/host-log.ts'
import { beginOf, redactedWhole, redacting } from './answer.ts'
import { ProxyError, type Credential } from './credential.ts'
import { endpointRewriter } from './endpoint-event.ts'
import { asksForList, mayRepeat, messageIn, type ProxiedMessage } from './message.ts'
import { mostListBytes, skillEntryFilter, withoutSkillEntries } from './skill-entries.ts'
import type { Upstream } from './upstream.ts'

export const proxyLimits = {
  /** The bytes of one message, and of all messages that are on their way. */
  bodyBytes: 16 * 1024 * 1024,
  bodiesBytes: 32 * 1024 * 1024,
  openRequests: 100,
  connections: 256,
  /** Addresses for messages that streams of the transport `sse` named. */
  messageAddresses: 100,
} as const

/** The server that a proxy leads to. */
export interface ProxyTarget {
  url: URL
  isSse: boolean
  /** An admin lets agents have its skills. */
  trustsSkills: boolean
  credential: Credential
  /** Knows what must not come back in an answer. */
  redactor: Redactor
  upstream: Upstream
}

interface Asked {
  request: IncomingMessage
  url: URL
  body: Buffer | null
  message: ProxiedMessage
}

/**
 * The proxy to one MCP server: a listener on loopback that sends on what the harness asks, with the credential that the harness does
 * not have. It belongs to the run host and ends with it.
 *
 *     listening -- lead (the run starts) -> open -- close (the run ends) -> closed
 *
 * - It answers whoever knows its path, which is in a file of the run alone. Browsers, and names that lead to this machine, are refused.
 * - An answer is passed on as it comes. A call of a tool is sent once, whatever becomes of it.
 * - Requests that stay open are no work of the run: nothing here counts as an event, and `close` cuts them.
 */
export class McpProxy {
  readonly #name: string
  readonly #log: HostLog
  readonly #server: Server
  readonly #path = randomBytes(32).toString('base64url')
  #target: ProxyTarget | null = null
  #port = 0
  #open = 0
  #bodiesBytes = 0
  #addresses = 0
  readonly #messageAddresses = new Map<string, URL>()

  private constructor(name: string, log: HostLog) {
    this.#name = name
    this.#log = log
    // A harness may use a connection again whenever it likes.
    const options = { keepAliveTimeout: 0, requestTimeout: 0 }
    const { createServer } = process.getBuiltinModule('node:http')
    this.#server = createServer(options, (request, response) => void this.#serve(request, response))
    this.#server.maxConnections = proxyLimits.connections
  }

  static async listen(name: string, log: HostLog): Promise<McpProxy> {
    const proxy = new McpProxy(name, log)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    proxy.#server.once('error', reject).listen(0, '127.0.0.1', resolve)
    await promise
    proxy.#server.on('error', (error) => log('mcp_door_error', { server: name, error: messageOf(error) }))
    proxy.#port = (proxy.#server.address() as AddressInfo).port
    return proxy
  }

  get address(): string {
    return `http://127.0.0.1:${this.#port}/${this.#path}`
  }

  lead(target: ProxyTarget): void {
    this.#target = target
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
    this.#target?.upstream.close()
    this.#target = null
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // The harness goes away when it likes.
    request.on('error', () => {})
    response.on('error', () => {})
    const url = this.#urlFor(request)
    const target = this.#target
    if (typeof url === 'number' || target === null) {
      response.writeHead(typeof url === 'number' ? url : 503).end()
      return
    }
    let asked: Asked | null = null
    let held = 0
    this.#open++
    try {
      if (this.#open > proxyLimits.openRequests) throw new ProxyError('too many requests are open', 503)
      const body = await this.#bodyOf(request, (bytes) => (held += bytes))
      asked = { request, url, body, message: messageIn(body) }
      if (!target.trustsSkills && asksForSkills(asked))
        return answerError(response, asked, { code: -32601, message: noSkills })
      await this.#passOn(target, asked, response)
    } catch (error) {
      this.#fail(target, { asked, response, error })
    } finally {
      this.#open--
      this.#bodiesBytes -= held
    }
  }

  /** Returns the address that is asked for, or the status with which the request is refused. */
  #urlFor({ method, url = '', headers }: IncomingMessage): URL | number {
    const [path = '', ...more] = (url.split('?')[0] ?? '').slice(1).split('/')
    if (!isSame(path, this.#path)) return 404
    // A name that leads to this machine is the way of a page in a browser, and only browsers say where a request is from.
    if (headers.host !== `127.0.0.1:${this.#port}` || headers.origin !== undefined) return 403
    if (method !== 'POST' && method !== 'GET' && method !== 'DELETE') return 405
    const found = more.length === 0 ? this.#target?.url : this.#messageAddresses.get(more.join('/'))
    return found ?? (this.#target === null ? 503 : 404)
  }

  async #bodyOf(request: IncomingMessage, hold: (bytes: number) => void): Promise<Buffer | null> {
    if (request.method !== 'POST') {
      request.resume()
      return null
    }
    const chunks: Buffer[] = []
    let bytes = 0
    // The rest of a message that is too large is not read, and its sender hears why.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length
      this.#bodiesBytes += chunk.length
      hold(chunk.length)
      if (bytes > proxyLimits.bodyBytes) throw new ProxyError('the message is too large', 413)
      if (this.#bodiesBytes > proxyLimits.bodiesBytes)
        throw new ProxyError('too many large messages are on their way', 503)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
  }

  async #passOn(target: ProxyTarget, asked: Asked, response: ServerResponse): Promise<void> {
    const gone = new AbortController()
    response.once('close', () => {
      if (!response.writableFinished) gone.abort()
    })
    if (response.destroyed) return
    const answer = await this.#answerOf(target, asked, gone.signal)
    const isStream = /^text\/event-stream/i.test(answer.headers['content-type'] ?? '')
    // An answer that is no stream is of use when it is whole: a short one is sent at once, with its length.
    const hasSkillEntries = !target.trustsSkills && asksForList(asked.message)
    const begun = isStream
      ? { bytes: Buffer.alloc(0), isWhole: false }
      : await beginOf(answer, hasSkillEntries ? mostListBytes : undefined)
    if (hasSkillEntries && !isStream && !begun.isWhole) {
      answer.destroy()
      throw new ProxyError('its list is too large')
    }
    const headers = headersBack(answer.headers)
    if (begun.isWhole) {
      const kept = hasSkillEntries ? withoutSkillEntries(begun.bytes) : begun.bytes
      const bytes = redactedWhole(target.redactor, kept)
      response.writeHead(answer.statusCode ?? 502, { ...headers, 'content-length': bytes.length }).end(bytes)
      return
    }
    response.writeHead(answer.statusCode ?? 502, headers)
    if (isStream) response.flushHeaders()
    const rewriting = target.isSse && isStream ? [endpointRewriter((said) => this.#messageAddress(target, said))] : []
    // An answer may come by a stream that was asked for apart.
    const mayList = !target.trustsSkills && (hasSkillEntries || asked.request.method === 'GET')
    const filtering = isStream && mayList ? [skillEntryFilter()] : []
    const last = redacting(target.redactor)
    last.write(begun.bytes)
    const { promise, resolve } = Promise.withResolvers<void>()
    // An answer that breaks off breaks off for the harness, too: it must not look whole.
    pipeline([answer, ...rewriting, ...filtering, last, response], () => resolve())
    await promise
  }

  /** Asks the server, and where it refuses the credential once more with another one, if the request may be repeated. Throws ProxyError. */
  async #answerOf(target: ProxyTarget, asked: Asked, signal: AbortSignal): Promise<IncomingMessage> {
    const { request, url, body, message } = asked
    const { credential, upstream } = target
    const isSafe = request.method !== 'POST' || mayRepeat(message)
    const send = async () => {
      const headers = headersOn(request.headers, await credential.headers(), body)
      return upstream.send({ method: request.method ?? 'GET', url, headers, body, mayRepeat: isSafe, signal })
    }
    const first = await send()
    if (credential.renew !== undefined && asksForMore(first)) {
      first.resume()
      throw new ProxyError(moreIsAsked)
    }
    if (first.statusCode !== 401) return first
    first.resume()
    if (!(await credential.renew?.())) throw new ProxyError('it refused the credential that svc sent (401)')
    if (!isSafe)
      throw new ProxyError('it refused the credential (401), so nothing was done; svc has a new one now: call again')
    const second = await send()
    if (second.statusCode !== 401) return second
    second.resume()
    throw new ProxyError('it refused the new credential, too (401)')
  }

  #messageAddress({ url }: ProxyTarget, said: string): string {
    const address = URL.canParse(said, url.href) ? new URL(said, url) : null
    // The credential is for this origin alone.
    if (address?.origin !== url.origin) throw new Error('the stream names an address of another origin')
    const id = String(++this.#addresses)
    this.#messageAddresses.set(id, address)
    this.#messageAddresses.delete(String(this.#addresses - proxyLimits.messageAddresses))
    return `/${this.#path}/${id}`
  }

  #fail(
    target: ProxyTarget,
    { asked, response, error }: { asked: Asked | null; response: ServerResponse; error: unknown },
  ) {
    if (response.destroyed) return
    if (response.headersSent) return void response.destroy()
    if (!(error instanceof ProxyError)) this.#log('mcp_door_failed', { server: this.#name, error: messageOf(error) })
    const why = error instanceof ProxyError ? error.message : 'svc failed to pass the request on'
    const status = error instanceof ProxyError ? error.status : 500
    const message = target.redactor.redactText(`The MCP server ${this.#name}: ${why}.`)
    if (asked === null) response.setHeader('connection', 'close')
    answerError(response, asked, { code: -32000, message, status })
  }
}

/** Throws ProxyError where a server could read more in the message than svc does. */
function asksForSkills({ request: { headers }, body }: Asked): boolean {
  if (headAsksForSkills(headers)) return true
  if (body === null) return false
  const why = whyReadOtherwise(headers)
  if (why !== null) throw new ProxyError(why, 415)
  const verdict = scannedForSkills(body)
  if (verdict === 'broken') throw new ProxyError(noMessage, 400)
  return verdict === 'found'
}

/**
 * Answers a request with an error of JSON-RPC, which every client shows; at a status of failure some would send a call of a tool again.
 */
function answerError(
  response: ServerResponse,
  asked: Asked | null,
  { status = 502, ...error }: { code: number; message: string; status?: number },
): void {
  const id = asked?.message.id ?? null
  response.writeHead(id === null ? status : 200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', id, error }))
}

/** Compares paths, and takes as long for any other path. */
function isSame(one: string, other: string): boolean {
  const [first, second] = [one, other].map((text) => createHash('sha256').update(text).digest())
  return timingSafeEqual(first!, second!)
}
