import { certificateTrouble } from '../../shared/lib/certificate-trouble.ts'
import type { IncomingMessage, RequestOptions } from 'node:http'
import { optimizeNothing } from '../../shared/lib/v8.ts'
import type { World } from '../../shared/lib/world.ts'
import { version } from '../../shared/lib/version.ts'
import { backoffMs } from '../../shared/lib/backoff.ts'
import { ApiFailure, CliError, usageError } from '../errors/cli-error.ts'
import { parseJsonText } from '../../shared/lib/lines.ts'
import type { ApiCall, ApiReply } from '../calls/api-call.ts'
import type { Caller, Client } from '../calls/client.ts'
import { checkStream, checkUsable, notOurServer } from '../replies/usable-reply.ts'

// Calls the API over HTTP with the caller's token, with retries that cannot repeat an effect.

/** After this long without a byte the connection counts as dead. */
export const idleMs = 120_000
const replyBytes = 256 * 1024 * 1024
const attempts = 4
/** Within a run the server may be restarting, so refused connections are retried for this long. */
const runPatienceMs = 20_000

export function createClient(caller: Caller, world: World): Client {
  const send = (call: ApiCall) => sendPatiently(caller, keyed(call, world), world)
  return {
    caller,
    send,
    async call(call) {
      const reply = await send(call)
      if (reply.status >= 300) throw failureOf(reply)
      return reply
    },
    async stream(call, signal) {
      const response = await open(caller, { call, signal })
      if (response.statusCode === 200) {
        try {
          checkStream(caller.server, call, response.headers)
        } catch (error) {
          response.destroy()
          throw error
        }
        return response
      }
      throw failureOf(await readReply(response))
    },
  }
}

function keyed(call: ApiCall, world: World): ApiCall {
  const hasKey = Object.keys(call.headers ?? {}).some((name) => name.toLowerCase() === 'idempotency-key')
  if (call.isKeyed !== true || hasKey) return call
  return { ...call, headers: { ...call.headers, 'Idempotency-Key': newKey(world) } }
}

/**
 * Differs from all other keys of the caller, which is all that is needed. A UUID would load Web Crypto, a tenth of the
 * call's time.
 */
function newKey(world: World): string {
  const chance = () => Math.floor(world.random() * 2 ** 52).toString(36)
  return `svc-${world.now().toString(36)}-${process.pid.toString(36)}-${chance()}-${chance()}`
}

async function sendPatiently(caller: Caller, call: ApiCall, world: World): Promise<ApiReply> {
  const isRepeatable = call.method === 'GET' || (call.isKeyed === true && call.streamed?.isRepeatable !== false)
  const giveUpAt = world.monotonic() + (caller.source === 'run' ? runPatienceMs : 0)
  for (let attempt = 0; ; attempt++) {
    let wait = backoffMs(attempt, { minMs: 250, maxMs: 4_000, random: world.random() })
    const mayRepeat = isRepeatable && attempt + 1 < attempts
    try {
      const reply = await readReply(await open(caller, { call }))
      checkUsable(caller.server, call, reply)
      if (!mayRepeat || ![502, 503, 504].includes(reply.status)) return reply
      wait = Math.max(wait, retryAfterMs(reply))
      if (wait > 10_000) return reply
    } catch (error) {
      const isRefused = error instanceof CliError && error.code === 'cli.server_refuses'
      // Nothing listened, so nothing was done, and any call may be retried.
      const isOfTheWay = error instanceof CliError && error.exit === 'unreachable'
      // Whatever answers in the server's place would answer the same again.
      const isOther = error instanceof CliError && error.code === notOurServer
      const isWorthIt = isRefused ? world.monotonic() < giveUpAt : isOfTheWay && !isOther && mayRepeat
      if (!isWorthIt) throw error
    }
    await world.sleep(wait)
  }
}

export function retryAfterMs(reply: ApiReply): number {
  const seconds = Number(reply.headers['retry-after'])
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 0
}

async function open(
  caller: Caller,
  { call, signal }: { call: ApiCall; signal?: AbortSignal },
): Promise<IncomingMessage> {
  const { streamed } = call
  const send = streamed === undefined ? null : (await import('./send-bytes.ts')).sendStreamed
  const url = urlOf(caller, call)
  const bytes = call.bytes ?? (call.body === undefined ? null : Buffer.from(JSON.stringify(call.body)))
  const options: RequestOptions = {
    method: call.method,
    agent: false,
    timeout: idleMs,
    headers: {
      Accept: 'application/json',
      'User-Agent': `svc/${version}`,
      ...(caller.token === '' ? {} : { Authorization: `Bearer ${caller.token}` }),
      ...(bytes === null ? {} : { 'Content-Type': 'application/json', 'Content-Length': bytes.length }),
      ...(streamed === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(streamed?.length == null ? {} : { 'Content-Length': streamed.length }),
      ...(caller.workspaceId === null ? {} : { 'Svc-Workspace-Id': caller.workspaceId }),
      ...call.headers,
    },
    ...(signal === undefined ? {} : { signal }),
  }
  return new Promise((resolve, reject) => {
    // Not imported: an import reads all exports, which also loads the WebSocket client and takes 20 ms.
    const http = process.getBuiltinModule(url.protocol === 'https:' ? 'node:https' : 'node:http')
    const request = begin(() => http.request(url, options, resolve))
    request.on('timeout', () => request.destroy(new Error(`nothing came for ${idleMs / 1000} seconds`)))
    request.on('error', (error) => {
      // What is to be sent cannot be read.
      const isOwn = error instanceof CliError || signal?.aborted === true
      reject(isOwn ? error : connectionError(caller, error))
    })
    if (send !== null && streamed !== undefined) send(request, streamed)
    else request.end(bytes ?? undefined)
    // All that the request needs is loaded now, and nothing may be optimized at the exit.
    optimizeNothing()
  })
}

/** Headers hold input of the caller: the token, the workspace, those of `svc api`. */
function begin<T>(request: () => T): T {
  try {
    return request()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_INVALID_CHAR') throw error
    throw usageError(`${(error as Error).message}: check SVC_TOKEN, --workspace and --header.`)
  }
}

function urlOf(caller: Caller, call: ApiCall): URL {
  const url = new URL(caller.server + call.path)
  for (const [key, value] of Object.entries(call.query ?? {})) {
    if (value === undefined || value === null) continue
    if (key === 'ids' && Array.isArray(value)) url.searchParams.append(key, value.join(','))
    else for (const item of Array.isArray(value) ? value : [value]) url.searchParams.append(key, String(item))
  }
  return url
}

export async function readReply(response: IncomingMessage): Promise<ApiReply> {
  const text = (await readBytes(response).catch(failAsBroken)).toString('utf8')
  return { status: response.statusCode ?? 0, headers: response.headers, text, body: parseJsonText(text) }
}

/** Does without `for await`, which takes a millisecond to set up. */
function readBytes(response: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    response.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > replyBytes) response.destroy(new Error(`the answer is larger than ${replyBytes} bytes`))
      else chunks.push(chunk)
    })
    response.on('end', () => resolve(Buffer.concat(chunks)))
    response.on('error', reject)
  })
}

function failAsBroken(error: Error): never {
  throw new CliError('connection_lost', `The answer of the server broke off: ${error.message}`, {
    exit: 'unreachable',
    remediation: 'Try again.',
    cause: error,
  })
}

export function failureOf(reply: ApiReply): ApiFailure {
  return new ApiFailure(reply.status, reply.body ?? reply.text.slice(0, 2000))
}

function connectionError(caller: Caller, error: NodeJS.ErrnoException): CliError {
  const isHere = /\/\/(127\.0\.0\.1|localhost|\[::1\])/.test(caller.server)
  const name = `the server at ${caller.server}`
  const why: Record<string, string> = {
    ECONNREFUSED: `Nothing listens at ${caller.server}: the server does not run, or has another address.`,
    ENOTFOUND: `The host of ${name} is not known.`,
    EAI_AGAIN: `The host of ${name} cannot be looked up now.`,
    EPROTO: `What answers at ${caller.server} does not speak TLS; is its address one with http://?`,
  }
  const code = error.code ?? ''
  return new CliError(
    code === 'ECONNREFUSED' ? 'server_refuses' : 'server_unreachable',
    why[code] ?? `No answer came from ${name}: ${certificateTrouble(error) ?? error.message}.`,
    {
      exit: 'unreachable',
      remediation: isHere
        ? 'Start it with `svc-server start`, or sign in to another one with `svc login --server URL`.'
        : 'Check the network, or sign in to another server with `svc login --server URL`.',
      cause: error,
    },
  )
}
