import type { ServerResponse, IncomingMessage } from 'node:http'
import type Koa from 'koa'
import { isSharedError, type PlainApiError, type ApiError } from '../../shared/api/errors.ts'
import { declaredCodes, type AnyRoute } from '../../shared/api/route.ts'
import type { StoredAnswer } from './idempotency.ts'
import { Answer } from './implement.ts'
import type { RequestState } from './kernel.ts'
import { toApiError } from './trouble.ts'

/** A reply that its route's schema does not hold, or a code that the route does not declare. */
class ContractBreach extends Error {
  override name = 'ContractBreach'
}

/** Turns what a handler returned into what is sent and, with a key, stored. */
export function encodeAnswer(route: AnyRoute, result: unknown, isChecking: boolean): StoredAnswer {
  const { status, body, headers } =
    result instanceof Answer ? result : { status: route.status, body: result, headers: {} as Record<string, string> }
  if (isChecking) checkReply(route, status, body)
  return { status, headers, body: status === 204 ? null : (JSON.stringify(body) ?? 'null') }
}

function checkReply(route: AnyRoute, status: number, body: unknown): void {
  const schema = status === route.status ? route.reply : route.otherReplies[status]
  if (schema === undefined) throw new ContractBreach(`${route.id} does not declare status ${status}`)
  if (status === 204) return
  // The reply is checked as the client gets it: dates and undefined have become what JSON makes of them.
  const parsed = schema.safeParse(JSON.parse(JSON.stringify(body) ?? 'null'))
  if (!parsed.success)
    throw new ContractBreach(`${route.id} answers what its schema does not hold: ${parsed.error.message}`)
}

export function sendAnswer(ctx: Koa.Context, answer: StoredAnswer): void {
  send(ctx, answer, Object.entries(answer.headers).flat())
}

/**
 * Status, headers and body go out at once. Koa, which could send them too, sets each header by itself and takes a good part
 * of the time of a read to do so.
 */
function send(
  ctx: Koa.Context,
  { status, body }: { status: number; body: string | null },
  more: readonly string[],
): void {
  ctx.respond = false
  const { res } = ctx
  // The client is gone.
  if (!ctx.writable || res.destroyed) {
    res.statusCode = status
    return
  }
  const headers = [...(ctx.state as RequestState).headers, ...more]
  if (body === null) {
    res.writeHead(status, headers).end()
    return
  }
  const length = Buffer.byteLength(body)
  headers.push('Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(length))
  // A body of as many bytes as characters is ASCII, which is written as it is.
  const encoding = length === body.length ? 'latin1' : 'utf8'
  res.writeHead(status, headers)
  if (!mustLinger(ctx.req, res)) return void res.end(body, encoding)
  res.write(body, encoding)
  endAfterBody(ctx.req, res)
}

/** The error to answer with; a code that the route does not declare is a defect when checking. */
export function declaredRefusal(route: AnyRoute | null, error: unknown, isChecking: boolean): ApiError | PlainApiError {
  const refusal = toApiError(error)
  if (!isChecking || route === null) return refusal
  const isDeclared =
    'id' in refusal
      ? route.plainErrors.includes(refusal.id)
      : isSharedError(refusal.code) || declaredCodes(route).has(refusal.code)
  if (isDeclared) return refusal
  const name = 'id' in refusal ? refusal.id : refusal.code
  return toApiError(new ContractBreach(`${route.id} does not declare ${name}`, { cause: error }))
}

export function sendRefusal(ctx: Koa.Context, refusal: ApiError | PlainApiError): void {
  const { status } = refusal
  if ('id' in refusal) return send(ctx, { status, body: JSON.stringify({ error: refusal.message }) }, [])
  const headers = Object.entries(refusal.options.headers ?? {}).flat()
  if (status === 401) headers.push('WWW-Authenticate', 'Bearer')
  const { requestId } = ctx.state as RequestState
  send(ctx, { status, body: JSON.stringify(refusal.toEnvelope(requestId)) }, headers)
}

/** The bytes of a body that nobody wants that are read and thrown away, and the time (ms) for that. */
const lingerBytes = 64 * 1024 * 1024
const lingerMs = 10_000

/**
 * Ends the answer once the rest of the request's body has come, or a bound is reached. A connection that ends with its
 * answer while bytes lie unread is reset, and its sender would see that instead of the answer. All of the answer has been
 * written before, so the sender need not wait for the end.
 */
function endAfterBody(request: IncomingMessage, response: ServerResponse): void {
  let bytes = 0
  const end = () => {
    clearTimeout(timer)
    request.off('data', count)
    response.end()
  }
  const count = (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > lingerBytes) end()
  }
  const timer = setTimeout(end, lingerMs).unref()
  request.on('data', count)
  request.once('end', end)
  request.once('close', end)
  request.resume()
}

/** True when the sender may still be sending on a connection that ends with the answer. */
const mustLinger = (request: IncomingMessage, response: ServerResponse): boolean =>
  !response.shouldKeepAlive && !request.complete && !request.destroyed
