import type { IncomingMessage, ServerResponse } from 'node:http'
import { asksForMore, headersBack, headersOn, moreIsAsked } from '../../../shared/lib/mcp-headers.ts'
import { brokerRefusal, mcpPath } from '../../../shared/runs/brokered.ts'
import type { NetworkDecision } from '../../../shared/runs/network.ts'
import { headAsksForSkills, noSkills, whyReadOtherwise } from '../../../shared/runs/server-skills.ts'
import { endpointRewriter } from './endpoint-event.ts'
import { forward, isPacked, type BrokerRequest, type ForwardLimits, type ForwardOptions } from './forward.ts'
import { McpMemory, type ServerMemory } from './mcp-memory.ts'
import type { Permit } from './permits.ts'
import { RedactingGuard } from './redacting-guard.ts'
import { ServerUnusable, type SentToServer, type ServerPermit } from './server-access.ts'
import { ScanTurns, SkillGuard } from './skill-guard.ts'

export interface McpLimits extends ForwardLimits {
  /** The requests that a sandbox may have open at once. A server has a stream that stays open beside its calls. */
  open: number
  /** The broker asks this often whether the servers of open requests may still be asked. */
  watchMs: number
}

export const mcpRequestLimits: McpLimits = {
  sentBytes: 16 * 1024 * 1024,
  answerBytes: 256 * 1024 * 1024,
  // A call of a tool may take so long.
  timeMs: 5 * 3_600_000,
  connectMs: 30_000,
  open: 100,
  watchMs: 5_000,
}

export interface McpRequestsOptions extends ForwardOptions {
  limits: McpLimits
  permit(): Promise<Permit | null>
}

/** A way to a server, as the sandbox names it: `/mcp/NAME`, or `/mcp/NAME/N` for an address that the server itself named. */
const ways = /^\/mcp\/([A-Za-z0-9][A-Za-z0-9_-]{0,63})(?:\/([1-9]\d{0,8}))?$/

/** The name of the server that is asked for; null: none is. */
export const serverIn = (target = ''): string | null => ways.exec(target)?.[1] ?? null

/**
 * Hands requests for the MCP servers of a run on to them, with what each is sent, which stays out here. What a sandbox gets is the answer
 * without these values. The server alone names other addresses, all of its own origin, and the sandbox gets numbers for them.
 */
export class McpRequests {
  private readonly options: McpRequestsOptions
  private readonly memory = new McpMemory()
  private readonly turns = new ScanTurns()
  private open = 0
  private stopWatching: (() => void) | null = null

  constructor(options: McpRequestsOptions) {
    this.options = options
  }

  /** Resolves when the answer has ended, with what became of it. */
  async pass({ request, response }: BrokerRequest, server: ServerPermit): Promise<NetworkDecision> {
    const { limits, log } = this.options
    const { method = '', headers } = request
    const refused = (status: number, message: string) => {
      end(response, status, message)
      return 'refused' as const
    }
    if (!['GET', 'POST', 'DELETE'].includes(method)) return refused(405, 'it is asked by GET, POST and DELETE')
    if (Number(headers['content-length'] ?? 0) > limits.sentBytes) return refused(413, 'the message is too large')
    if (!server.trustsSkills) {
      if (headAsksForSkills(headers)) return refused(403, noSkills)
      const why = method === 'POST' ? whyReadOtherwise(headers) : null
      if (why !== null) return refused(415, why)
    }
    if (this.open >= limits.open) return refused(429, 'too many requests are open')
    const known = this.memory.of(server.name)
    const leaving = new AbortController()
    this.open++
    known.open.add(leaving)
    this.watch()
    try {
      const sent = await server.sent()
      if (response.destroyed) return 'failed'
      const number = ways.exec(request.url ?? '')?.[2]
      const url = number === undefined ? sent.url : known.addresses.get(number)
      if (url === undefined || url.origin !== sent.url.origin) return refused(404, 'it named no such address')
      known.learn(sent.secrets, leaving)
      return await this.ask({ request, response }, { server, sent, url, known, signal: leaving.signal })
    } catch (error) {
      if (error instanceof ServerUnusable) return refused(403, error.message)
      log.error({ err: error }, 'the broker of a sandbox failed at an MCP server')
      end(response, 502, 'svc failed to pass the request on')
      return 'failed'
    } finally {
      this.open--
      known.open.delete(leaving)
      if (this.open === 0) this.unwatch()
    }
  }

  close(): void {
    this.unwatch()
  }

  private ask(
    { request, response }: BrokerRequest,
    {
      server,
      sent,
      url,
      known,
      signal,
    }: { server: ServerPermit; sent: SentToServer; url: URL; known: ServerMemory; signal: AbortSignal },
  ): Promise<NetworkDecision> {
    const { world, limits } = this.options
    const isPost = request.method === 'POST'
    const isListening = server.isSse && request.method === 'GET'
    const path = (address: URL) => `${mcpPath(server.name)}/${known.numberOf(address)}`
    const rewriting = isListening ? [endpointRewriter((said) => path(addressIn(said, { url })))] : []
    const guard = new RedactingGuard({ redactor: known.redactor.another(), world }, limits.answerBytes)
    return forward(
      { request, response },
      {
        url,
        headers: { ...headersOn(request.headers, sent.headers, null), host: url.host },
        hasBody: isPost,
        whom: 'it',
        instead: (answer) => this.instead(answer, { response, server, sent, url, isPost, path }),
        headOf: (answer) => {
          const head = headersBack(answer.headers)
          const text = JSON.stringify(head)
          return known.redactor.redactText(text) === text ? head : 'it told its credential in the head of its answer'
        },
        guards: [...rewriting, guard],
        sentGuards: server.trustsSkills ? [] : [new SkillGuard(this.turns)],
        signal,
        end,
      },
      this.options,
    )
  }

  /** Sees to answers that are not for the harness: refused credentials, redirects, and what cannot be looked through. */
  private async instead(
    answer: IncomingMessage,
    {
      response,
      server,
      sent,
      url,
      isPost,
      path,
    }: {
      response: ServerResponse
      server: ServerPermit
      sent: SentToServer
      url: URL
      isPost: boolean
      path: (address: URL) => string
    },
  ): Promise<NetworkDecision | null> {
    const { statusCode = 502, headers } = answer
    const failed = (message: string) => {
      end(response, 502, message)
      return 'failed' as const
    }
    if (isPacked(answer)) return failed('it answers in a packed form that was not asked for')
    if (server.hasConnection && asksForMore(answer)) return failed(moreIsAsked)
    if (statusCode === 401) {
      if (sent.version === null) return failed('it refused what svc sent as its credential (401)')
      const next = await server.sent(sent.version)
      if (next.version === sent.version)
        return failed('it refused the credential of its connection (401). A person signs in anew (svc connection list)')
      // The connection has another credential now. The proxy in the sandbox knows whether the request may be made again.
      response.writeHead(401, { 'content-length': 0 }).end()
      return 'failed'
    }
    const { location } = headers
    if (statusCode < 300 || statusCode > 399 || statusCode === 304 || location === undefined) return null
    const next = URL.parse(location, url.href)
    if (next?.origin !== url.origin) return failed('it redirects to another address')
    if (isPost && statusCode !== 307 && statusCode !== 308) return failed('it redirects: name the address at the end')
    response.writeHead(isPost ? statusCode : 307, { location: path(next), 'content-length': 0 }).end()
    return 'allowed'
  }

  /** Looks from time to time whether the servers of open requests may still be asked, and ends those that may not. */
  private watch(): void {
    const { world, limits } = this.options
    this.stopWatching ??= world.after(limits.watchMs, () => {
      this.stopWatching = null
      void this.readServers().finally(() => {
        if (this.open > 0) this.watch()
      })
    })
  }

  private unwatch(): void {
    this.stopWatching?.()
    this.stopWatching = null
  }

  private async readServers(): Promise<void> {
    try {
      const servers = (await this.options.permit())?.servers ?? []
      for (const [name, { open }] of this.memory.all()) {
        if (open.size === 0) continue
        const before = [...open]
        const server = servers.find((one) => one.name === name)
        const why = server === undefined ? 'the run is over' : await server.whyNot()
        if (why !== null) for (const leaving of before) leaving.abort(new ServerUnusable(why))
      }
    } catch (error) {
      // The database is away: the next look decides.
      this.options.log.warn({ err: error }, 'the servers of a sandbox could not be looked at')
    }
  }
}

/** The credential is for this origin alone. */
function addressIn(said: string, { url }: { url: URL }): URL {
  const address = URL.parse(said, url.href)
  if (address === null || address.origin !== url.origin || address.username + address.password !== '')
    throw new Error('the stream names an address of another origin')
  return address
}

/** Answers in the broker's own name, so that the proxy in the sandbox tells whose words they are. */
function end(response: ServerResponse, status: number, message: string): void {
  if (response.headersSent) return void response.destroy()
  response.writeHead(status, { 'content-type': 'text/plain', connection: 'close', [brokerRefusal]: 'true' })
  response.end(`${message}\n`)
}
