import type Koa from 'koa'
import { isSharedError, type PlainApiError, type ApiError } from '../../shared/api/errors.ts'
import { declaredCodes, type AnyRoute } from '../../shared/api/route.ts'
import type { StoredAnswer } from './idempotency.ts'
import { Answer } from './implement.ts'
import { refusalOf } from './trouble.ts'

/** A reply that its route's schema does not hold, or a code that the route does not declare. */
export class ContractBreach extends Error {
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
  // What a client gets: dates and undefined have become what JSON makes of them.
  const parsed = schema.safeParse(JSON.parse(JSON.stringify(body) ?? 'null'))
  if (!parsed.success)
    throw new ContractBreach(`${route.id} answers what its schema does not hold: ${parsed.error.message}`)
}

export function sendAnswer(ctx: Koa.Context, answer: StoredAnswer): void {
  for (const [name, value] of Object.entries(answer.headers)) ctx.set(name, value)
  ctx.status = answer.status
  if (answer.body === null) {
    ctx.body = null
    ctx.status = answer.status
    return
  }
  ctx.set('Content-Type', 'application/json; charset=utf-8')
  ctx.body = answer.body
}

/** The error to answer with; a code that the route does not declare is a defect when checking. */
export function declaredRefusal(route: AnyRoute | null, error: unknown, isChecking: boolean): ApiError | PlainApiError {
  const refusal = refusalOf(error)
  if (!isChecking || route === null) return refusal
  const isDeclared =
    'id' in refusal
      ? route.plainErrors.includes(refusal.id)
      : isSharedError(refusal.code) || declaredCodes(route).has(refusal.code)
  if (isDeclared) return refusal
  const name = 'id' in refusal ? refusal.id : refusal.code
  return refusalOf(new ContractBreach(`${route.id} does not declare ${name}`, { cause: error }))
}

export function sendRefusal(ctx: Koa.Context, refusal: ApiError | PlainApiError, requestId: string): void {
  ctx.status = refusal.status
  ctx.set('Content-Type', 'application/json; charset=utf-8')
  if ('id' in refusal) {
    ctx.body = JSON.stringify({ error: refusal.message })
    return
  }
  for (const [name, value] of Object.entries(refusal.options.headers ?? {})) ctx.set(name, value)
  if (refusal.status === 401) ctx.set('WWW-Authenticate', 'Bearer')
  ctx.body = JSON.stringify(refusal.toEnvelope(requestId))
}
