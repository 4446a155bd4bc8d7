import type Koa from 'koa'
import { fail } from '../../shared/api/errors.ts'
import { rawBody, type AnyRoute, type Role } from '../../shared/api/route.ts'
import type { Db } from '../db/open.ts'
import { transactionInTurn } from '../db/transaction.ts'
import { parseJson, readBytes } from './body.ts'
import { callerKey, hasRole, type Caller } from './callers.ts'
import { readKey, type Claim, type StoredAnswer } from './idempotency.ts'
import type { HandlerInput, ImplementedRoute } from './implement.ts'
import type { Kernel, RequestState } from './kernel.ts'
import { limitHeaders, type LimitState } from './limits.ts'
import { encodeAnswer, sendAnswer, setHeaders } from './reply.ts'
import { EventStream, sendStream } from './sse.ts'
import { isWithoutEffect } from './trouble.ts'
import { createValidator, type Validator } from './validate.ts'

/**
 * The one path of a request through a route: caller, role, version, rate limit, key, body, validation, then the handler
 * (a write within its transaction), then the answer. What can be known of the route is worked out when it is mounted.
 */
export type Compiled = (ctx: Koa.Context, params: Readonly<Record<string, string>>) => Promise<void>

export const apiVersion = '2026-03'

interface Mounted extends ImplementedRoute {
  kernel: Kernel
  validator: Validator
}

type Input = HandlerInput<AnyRoute>

export function compile(implemented: ImplementedRoute, kernel: Kernel): Compiled {
  const mounted: Mounted = { ...implemented, kernel, validator: createValidator(implemented.route) }
  const { route } = implemented
  const isRead = route.method === 'GET'
  return async (ctx, params) => {
    const state = ctx.state as RequestState
    state.routeId = route.id
    const caller = route.callers === 'none' ? null : await admit(mounted, ctx)
    checkVersion(ctx)
    await takeFromLimit(mounted, ctx, caller)
    const key = readKey(headerOf(ctx, 'idempotency-key'), caller === null ? 'none' : route.idempotency)
    const body = isRead ? undefined : await censored(kernel, caller, await readBody(mounted, ctx))
    const input = inputOf(mounted, ctx, { caller, params, body })
    if (isRead) return answerRead(mounted, ctx, input)
    if (route.stream === 'sse') return answerRead(mounted, ctx, Object.assign(input, { idempotencyKey: key }))
    const keyed = key === null || caller === null ? null : { key, caller, body: input.body }
    return answerWrite(mounted, ctx, { input, keyed })
  }
}

/** The caller, when the route is for such a one. */
async function admit({ route, kernel }: Mounted, ctx: Koa.Context): Promise<Caller> {
  const caller = await kernel.callers.callerOf(ctx.req)
  ;(ctx.state as RequestState).caller = caller
  const { callers } = route
  if (callers === 'none') return caller
  const access = caller.kind === 'person' ? callers.person : callers.agent
  if (typeof access === 'object') {
    const message = caller.kind === 'agent' ? 'Only a person may call this.' : undefined
    return fail(access.refused, access.refused === 'http_exception' && message !== undefined ? { message } : {})
  }
  if (caller.kind === 'person' && !hasRole(caller, access as Role)) {
    fail('http_exception', { message: `Only a workspace ${access} may call this.` })
  }
  return caller
}

function checkVersion(ctx: Koa.Context): void {
  const version = headerOf(ctx, 'svc-version')
  if (version === undefined || version === apiVersion) return
  fail('unsupported_api_version', { param: 'Svc-Version', allowedValues: [apiVersion] })
}

/** Most of the time nothing is waited for. */
function takeFromLimit({ route, kernel }: Mounted, ctx: Koa.Context, caller: Caller | null): Promise<void> | void {
  if (route.rate === 'none') return
  const isByAddress = caller === null || route.rate === 'sign_in'
  const taken = kernel.limiter.take(route.rate, isByAddress ? `address:${ctx.ip}` : callerKey(caller))
  return taken instanceof Promise ? taken.then((state) => tellLimit(ctx, state)) : tellLimit(ctx, taken)
}

function tellLimit(ctx: Koa.Context, state: LimitState | null): void {
  if (state === null) return
  const told = limitHeaders(state)
  const { headers } = ctx.state as RequestState
  headers.push('RateLimit-Policy', told['RateLimit-Policy'], 'RateLimit', told.RateLimit)
}

async function censored(kernel: Kernel, caller: Caller | null, body: unknown): Promise<unknown> {
  const isText = typeof body === 'object' && body !== null && !(body instanceof Uint8Array)
  return caller?.kind === 'agent' && isText && kernel.censor ? kernel.censor(caller, body) : body
}

/** The bytes are read, within the limit, even when the route takes no body. */
async function readBody({ route }: Mounted, ctx: Koa.Context): Promise<unknown> {
  const bytes = await readBytes(ctx.req, route.bodyLimit)
  if (route.body === rawBody) return bytes
  return route.body.def.type === 'undefined' ? undefined : parseJson(bytes, headerOf(ctx, 'content-type'))
}

interface Given {
  caller: Caller | null
  params: Readonly<Record<string, string>>
  body: unknown
}

function inputOf(mounted: Mounted, ctx: Koa.Context, given: Given): Input {
  const { kernel, validator, route } = mounted
  const { requestId } = ctx.state as RequestState
  let signal: AbortSignal | null = null
  const isStream = route.stream === 'sse' && wantsStream(route, headerOf(ctx, 'accept'))
  return {
    params: validator.params(given.params) as Input['params'],
    query: validator.query(ctx.querystring) as Input['query'],
    body: validator.body(given.body),
    // Routes of all callers are kept in one list; what their handlers get was checked by `admit`.
    caller: given.caller as Input['caller'],
    db: kernel.root,
    world: kernel.world,
    get log() {
      return kernel.log.child({ requestId })
    },
    requestId,
    path: ctx.path,
    afterCommit: (run) => run(),
    get signal() {
      return (signal ??= endOf(ctx, kernel))
    },
    get bearer() {
      return bearerOf(headerOf(ctx, 'authorization') ?? '')
    },
    stream: isStream ? { lastEventId: headerOf(ctx, 'last-event-id') ?? null } : null,
  }
}

const bearerOf = (header: string): string | null => /^Bearer +([!-~]{1,4096})$/i.exec(header)?.[1] ?? null

function wantsStream(route: AnyRoute, accept: string | undefined): boolean {
  if (/\btext\/event-stream\b/.test(accept ?? '')) return true
  return route.method !== 'GET' && !/\bapplication\/json\b/.test(accept ?? '')
}

/** Aborts when the client is gone or the server stops. */
function endOf(ctx: Koa.Context, kernel: Kernel): AbortSignal {
  const controller = new AbortController()
  const abort = () => controller.abort()
  ctx.res.once('close', () => {
    kernel.stopping.removeEventListener('abort', abort)
    abort()
  })
  if (kernel.stopping.aborted) abort()
  else kernel.stopping.addEventListener('abort', abort, { once: true })
  return controller.signal
}

/** What a read, or a write that streams and sees to its own transaction, answers. */
async function answerRead({ route, handler, kernel }: Mounted, ctx: Koa.Context, input: Input): Promise<void> {
  const result = await handler(input)
  if (!(result instanceof EventStream)) return sendAnswer(ctx, encodeAnswer(route, result, kernel.isChecking))
  ctx.respond = false
  setHeaders(ctx.res, (ctx.state as RequestState).headers)
  const { signal } = input
  await sendStream(ctx.res, { source: result.source, world: kernel.world, signal })
}

interface Keyed {
  key: string
  caller: Caller
  body: unknown
}

async function answerWrite(
  mounted: Mounted,
  ctx: Koa.Context,
  { input, keyed }: { input: Input; keyed: Keyed | null },
): Promise<void> {
  if (keyed === null) return sendAnswer(ctx, await work(mounted, input, null))
  const { idempotency, log } = mounted.kernel
  const { method, path, search } = ctx
  const begun = await idempotency.begin({ ...keyed, method, path, search })
  if (begun.kind === 'replay') {
    ;(ctx.state as RequestState).headers.push('Idempotency-Replayed', 'true')
    return sendAnswer(ctx, begun.answer)
  }
  try {
    sendAnswer(ctx, await work(mounted, input, begun))
  } catch (error) {
    const effect = isWithoutEffect(error) ? 'nothing' : 'unknown'
    await idempotency.release(begun, effect).catch((failure: unknown) => {
      // The claim stays as it is and counts as unknown once this process is gone.
      log.error({ err: failure, requestId: input.requestId }, 'an idempotency key could not be released')
    })
    throw error
  }
}

/** Runs the handler in its transaction; the answer is encoded, checked and stored before the commit. */
async function work(mounted: Mounted, input: Input, claim: Claim | null): Promise<StoredAnswer> {
  const { route, handler, kernel } = mounted
  const afterwards: (() => void)[] = []
  const run = async (db: Db): Promise<StoredAnswer> => {
    input.db = db
    input.afterCommit = (later) => void afterwards.push(later)
    const encoded = encodeAnswer(route, await handler(input), kernel.isChecking)
    if (claim !== null) await kernel.idempotency.complete(db, claim, encoded, route.isSecret)
    return encoded
  }
  const again = (error: unknown) => {
    kernel.log.warn({ err: error, requestId: input.requestId, route: route.id }, 'transaction done again')
    afterwards.length = 0
  }
  const answer = await (route.transaction ? transactionInTurn(kernel.root, run, again) : run(kernel.root))
  for (const later of afterwards) {
    try {
      later()
    } catch (error) {
      // The change is committed and its outbox row tells of it; only the shortcut failed.
      kernel.log.error({ err: error, requestId: input.requestId, route: route.id }, 'after-commit step failed')
    }
  }
  return answer
}

function headerOf(ctx: Koa.Context, name: string): string | undefined {
  const value = ctx.req.headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}
