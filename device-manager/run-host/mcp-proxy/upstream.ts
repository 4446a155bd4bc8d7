import { certificateTrouble } from '../../../shared/lib/certificate-trouble.ts'
import type { Agent, ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { ProxyError } from './credential.ts'

/** The modules are loaded when the first proxy is opened: they take megabytes, which a run host without one does not need. */
const nodeHttp = () => process.getBuiltinModule('node:http')
const nodeHttps = () => process.getBuiltinModule('node:https')

export interface UpstreamRequest {
  method: string
  url: URL
  headers: OutgoingHttpHeaders
  body: Buffer | null
  /** A second sending of it does nothing. */
  mayRepeat: boolean
  /** The signal is aborted when the harness wants no answer any more. */
  signal: AbortSignal
}

export interface Upstream {
  /** Sends the request. Rejects with ProxyError. */
  send(request: UpstreamRequest): Promise<IncomingMessage>
  close(): void
}

const mostRedirects = 3
/** A server may take as long as it likes to answer, but not to be reached. */
const connectMs = 30_000
/** Connections that nobody uses are closed before most servers close them, since a call that meets the end of one would be lost. */
const idleMs = 4_000

/** Sends requests to the server, by the proxy that the variables of the run's environment name. */
export function upstreamBy(env: Readonly<Record<string, string>>): Upstream {
  const options = { keepAlive: true, timeout: idleMs, proxyEnv: withoutLoopback(env) }
  const agents = new Map<string, Agent>()
  const agentOf = ({ protocol }: URL): Agent => {
    const known = agents.get(protocol)
    if (known !== undefined) return known
    const made = protocol === 'https:' ? new (nodeHttps().Agent)(options) : new (nodeHttp().Agent)(options)
    agents.set(protocol, made)
    return made
  }
  return {
    async send(request) {
      let { url } = request
      for (let redirects = 0; ; redirects++) {
        const response = await sendOnce({ ...request, url }, agentOf(url))
        const next = redirectOf(response, { ...request, url })
        if (next === null) return response
        // Its connection can be used again once it is read to its end.
        response.resume()
        if (redirects === mostRedirects) throw new ProxyError('it redirects too often')
        url = next
      }
    },
    close: () => agents.forEach((agent) => agent.destroy()),
  }
}

/** Servers of this machine are reached without a proxy. */
function withoutLoopback(env: Readonly<Record<string, string>>): Record<string, string> {
  const { HTTP_PROXY, HTTPS_PROXY, http_proxy = HTTP_PROXY, https_proxy = HTTPS_PROXY } = env
  const names = [env['no_proxy'] ?? env['NO_PROXY'], '127.0.0.1', 'localhost', '::1']
  return {
    ...(http_proxy !== undefined && { http_proxy }),
    ...(https_proxy !== undefined && { https_proxy }),
    no_proxy: names.filter((name) => name !== undefined && name !== '').join(','),
  }
}

async function sendOnce(request: UpstreamRequest, agent: Agent): Promise<IncomingMessage> {
  for (let isSecond = false; ; isSecond = true) {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const { method, url, headers, body, signal } = request
    const { request: start } = url.protocol === 'https:' ? nodeHttps() : nodeHttp()
    const sent = start(url, { method, headers, agent, signal })
    sent.once('response', resolve)
    // Errors that come after the answer began show in the answer.
    sent.on('error', reject)
    limitConnecting(sent)
    sent.end(body ?? undefined)
    try {
      return await promise
    } catch (error) {
      // The server closed an idle connection at this moment.
      const isStale = sent.reusedSocket && (error as NodeJS.ErrnoException).code === 'ECONNRESET'
      if (!isStale || isSecond || !request.mayRepeat || signal.aborted) throw unreachable(error)
    }
  }
}

function limitConnecting(sent: ClientRequest): void {
  const timer = setTimeout(() => sent.destroy(new ProxyError('it could not be reached in time', 504)), connectMs)
  const isThere = () => clearTimeout(timer)
  sent.once('close', isThere)
  sent.once('socket', (socket) => {
    if (!socket.connecting) return isThere()
    // `secureConnect` comes later; a server that takes a connection and shakes no hands is as good as none.
    socket.once(sent.protocol === 'https:' ? 'secureConnect' : 'connect', isThere)
  })
}

function unreachable(error: unknown): ProxyError {
  if (error instanceof ProxyError) return error
  const { code } = error as NodeJS.ErrnoException
  const why = certificateTrouble(error)
  if (why !== null) return new ProxyError(`it could not be reached: ${why}`)
  return new ProxyError(`it could not be reached${code === undefined ? '' : ` (${code})`}`)
}

/** Returns the address to which the answer redirects the request; null: it does not. */
function redirectOf({ statusCode = 0, headers }: IncomingMessage, { url, method }: UpstreamRequest): URL | null {
  const { location } = headers
  if (statusCode < 300 || statusCode > 399 || statusCode === 304 || location === undefined) return null
  const next = URL.canParse(location, url.href) ? new URL(location, url) : null
  // The credential is for this origin alone.
  if (next?.origin !== url.origin) throw new ProxyError(`it redirects to another address: ${next?.origin ?? 'none'}`)
  const keepsMethod = statusCode === 307 || statusCode === 308
  if (!keepsMethod && method !== 'GET') throw new ProxyError(`it redirects to ${next.pathname}: name that address`)
  return next
}
