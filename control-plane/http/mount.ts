import type Koa from 'koa'
import { ApiError, fail } from '../../shared/api/errors.ts'
import type { AnyRoute, Role } from '../../shared/api/route.ts'
import type { Db } from '../db/open.ts'
import { inTransaction } from '../db/transaction.ts'
import type { ErrorCode } from '../../shared/api/error-codes.ts'
import { AnswerRoom } from './answer-room.ts'
import type { Release } from './body-room.ts'
import { callerKey, type Caller, hasRole } from './callers.ts'
import { bearerOf, headerOf, setHeaders } from './headers.ts'
import { readKey, type KeyClaim, type StoredAnswer } from './idempotency.ts'
import type { Client, HandlerInput, ImplementedRoute } from './implement.ts'
import type { Kernel, RequestState } from './kernel.ts'
import { sendText, type JsonText } from './json-text.ts'
import { limitHeaders, type LimitState } from './limits.ts'
import { encodeAnswer, sendAnswer } from './reply.ts'
import { EventStream, sendStream } from './sse.ts'
import { ownerOf, takeBody } from './take-body.ts'
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

export function compileRoute(implemented: ImplementedRoute, kernel: Kernel): Compiled {
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
    if (isRead) return answerRead(mounted, ctx, inputOf(mounted, ctx, { caller, params, body: undefined }))
    const { body, release, content = null } = await takeBody(mounted, ctx, caller)
    try {
      // A handler that sees to its own transactions gets the caller as of now; a body may take its time.
      const now = caller === null || route.transaction ? caller : (await readmit(mounted, ctx, { caller })).caller
      const input = inputOf(mounted, ctx, { caller: now, params, body })
      if (route.stream === 'sse') {
        return await answerRead(mounted, ctx, Object.assign(input, { idempotencyKey: key, releaseBody: release }))
      }
      const keyed = key === null || caller === null ? null : { key, caller, body: input.body }
      return await answerWrite(mounted, ctx, { input, keyed })
    } finally {
      release()
      // The content has no owner where the request was refused, or answered as one before.
      if (content !== null) await kernel.blobs.giveUp(content.blobId)
    }
  }
}

function checkVersion(ctx: Koa.Context): void {
  const version = headerOf(ctx, 'svc-version')
  if (version === undefined || version === apiVersion) return
  fail('unsupported_api_version', { param: 'Svc-Version', allowedValues: [apiVersion] })
}

/** Takes a point of the caller's limit, most of the time without waiting. */
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

interface RequestParts {
  caller: Caller | null
  params: Readonly<Record<string, string>>
  body: unknown
}

function inputOf(mounted: Mounted, ctx: Koa.Context, given: RequestParts): Input {
  const { kernel, validator, route } = mounted
  const { requestId } = ctx.state as RequestState
  let signal: AbortSignal | null = null
  const end = () => (signal ??= endOf(ctx, kernel))
  const isStream = route.stream === 'sse' && wantsStream(route, headerOf(ctx, 'accept'))
  return {
    params: validator.params(given.params) as Input['params'],
    query: validator.query(ctx.querystring) as Input['query'],
    body: kernel.isChecking ? frozen(validator.body(given.body)) : validator.body(given.body),
    // Routes of all callers are kept in one list; what their handlers get was checked by `admit`.
    caller: given.caller as Input['caller'],
    db: kernel.root,
    world: kernel.world,
    get log() {
      return kernel.log.child({ requestId })
    },
    requestId,
    path: ctx.path,
    get signal() {
      return end()
    },
    get room() {
      return new AnswerRoom(kernel.rooms.answers, ownerOf(ctx, given.caller), end)
    },
    get contentType() {
      return headerOf(ctx, 'content-type') ?? null
    },
    get bearer() {
      return bearerOf(headerOf(ctx, 'authorization') ?? '')
    },
    client: clientOf(headerOf(ctx, 'user-agent')),
    stream: isStream ? { lastEventId: headerOf(ctx, 'last-event-id') ?? null } : null,
  }
}

const clientOf = (userAgent = ''): Client => (userAgent.startsWith('svc/') ? 'cli' : 'api')

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

type Reading = Input & { releaseBody?: Release }

/** Answers a read, or a write that streams and sees to its own transaction. */
async function answerRead(mounted: Mounted, ctx: Koa.Context, input: Reading): Promise<void> {
  const { caller, stream } = input as { caller: Caller | null; stream: unknown }
  if (stream === null || caller === null) return readAndSend(mounted, ctx, input)
  // The stream is counted before the handler, which may do something.
  const leave = mounted.kernel.streams.take(caller)
  try {
    await readAndSend(mounted, ctx, input)
  } finally {
    leave()
  }
}

async function readAndSend({ route, handler, kernel }: Mounted, ctx: Koa.Context, input: Reading): Promise<void> {
  const result = await handler(input)
  // A stream may last for hours.
  input.releaseBody?.()
  if (!(result instanceof EventStream)) return sendAnswer(ctx, encodeAnswer(route, result, kernel.isChecking))
  ctx.respond = false
  setHeaders(ctx.res, (ctx.state as RequestState).headers)
  const { signal } = input
  const mayRead = () => mayStillRead(kernel, ctx, result)
  const limits = checksOf(kernel)
  await sendStream(ctx.res, { source: result.source, world: kernel.world, signal, mayRead, limits })
}

const checksOf = ({ streamCheckMs: checkMs }: Kernel) => (checkMs === undefined ? {} : { checkMs })

/** A token is revoked, a session ends, a person leaves, an agent is hidden while a stream goes on. */
export async function mayStillRead(
  kernel: Pick<Kernel, 'callers'>,
  ctx: Koa.Context,
  stream: Pick<EventStream, 'mayStillRead'>,
): Promise<boolean> {
  try {
    await stream.mayStillRead(await kernel.callers.callerOf(ctx.req))
    return true
  } catch (error) {
    if (error instanceof ApiError && error.status < 500) return false
    throw error
  }
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
  const answerTo = async (claim: KeyClaim | null) =>
    mounted.route.stream === 'text'
      ? writeText(mounted, ctx, { input, claim })
      : sendAnswer(ctx, await work(mounted, ctx, { input, claim }))
  if (keyed === null) return answerTo(null)
  const { idempotency, log } = mounted.kernel
  const { method, path, search } = ctx
  const begun = await idempotency.begin({ ...keyed, method, path, search })
  if (begun.kind === 'replay') {
    ;(ctx.state as RequestState).headers.push('Idempotency-Replayed', 'true')
    return sendAnswer(ctx, begun.answer)
  }
  try {
    await answerTo(begun)
  } catch (error) {
    const effect = isWithoutEffect(error) ? 'nothing' : 'unknown'
    await idempotency.release(begun, effect).catch((failure: unknown) => {
      // The claim stays as it is until then, and counts as unknown once this process is gone.
      log.error(
        { err: failure, requestId: input.requestId },
        'an idempotency key could not be released; it is tried again',
      )
    })
    throw error
  }
}

/** The answer to a key is kept before its end is sent, so that whoever has all of it may ask again; a large one is not kept. */
async function writeText(
  { handler, kernel }: Mounted,
  ctx: Koa.Context,
  { input, claim }: { input: Input; claim: KeyClaim | null },
): Promise<void> {
  const text = (await handler(input)) as JsonText
  const { idempotency, root, world } = kernel
  const keep = async (body: string | null) => {
    if (claim === null) return
    if (body === null) return idempotency.release(claim, 'nothing')
    await idempotency.complete(root, claim, { status: 200, headers: {}, body }, false)
  }
  const mayRead = () => mayStillRead(kernel, ctx, text)
  const { headers } = ctx.state as RequestState
  await sendText(ctx, text, { world, signal: input.signal, headers, mayRead, keep, limits: checksOf(kernel) })
}

/**
 * Runs the handler in its transaction; the answer is encoded, checked and stored before the commit. Each attempt begins with
 * what the request said, and who the caller is now: nothing of an attempt that was undone reaches the next.
 */
async function work(
  mounted: Mounted,
  ctx: Koa.Context,
  { input, claim }: { input: Input; claim: KeyClaim | null },
): Promise<StoredAnswer> {
  const { route, handler, before, giveUp, kernel } = mounted
  const { caller } = input
  const prepared = await before?.(input)
  const run = async (db: Db): Promise<StoredAnswer> => {
    input.db = db
    // A person who is no member any more, or has another role, does nothing after that, nor does a run that has ended.
    const now = route.transaction && caller !== null ? await readmit(mounted, ctx, { caller, db }) : null
    if (now !== null) input.caller = now.caller
    const result = await handler(input, prepared)
    if (now !== null && now.refusal !== null) throw now.refusal
    const encoded = encodeAnswer(route, result, kernel.isChecking)
    if (claim !== null) await kernel.idempotency.complete(db, claim, encoded, route.isSecret)
    return encoded
  }
  const locks = caller === null ? [] : [caller.workspaceId]
  try {
    return await (route.transaction ? inTransaction(kernel.root, run, { locks }) : run(kernel.root))
  } finally {
    await giveUp?.(prepared)
  }
}

/** A handler may be called again with the same body, so none may change it: where replies are checked, so is this. */
function frozen<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
  for (const inner of Object.values(value)) frozen(inner)
  return Object.freeze(value)
}

/**
 * Decides who may call a route. The caller is read when the headers of a request are there, and once more when its body is: the
 * body may come much later, after a token was revoked, a person left or a run ended.
 */
interface GuardedRoute {
  route: AnyRoute
  kernel: Pick<Kernel, 'callers'>
}

/** The caller, when the route is for such a one; as `db` sees it, when that is given. */
async function admit({ route, kernel }: GuardedRoute, ctx: Koa.Context, db?: Db): Promise<Caller> {
  const caller = await kernel.callers.callerOf(ctx.req, db)
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

/** The answers of routes to an agent whose run has just ended. */
const endedRunCodes: readonly ErrorCode[] = [
  'run_output.run_terminal',
  'platform_change_requires_run',
  'hitl_stop_failed',
]

interface Readmitted {
  caller: Caller
  /** The run has ended, and the route has an answer for that: it is asked, and fails with this when it does not refuse. */
  refusal: ApiError | null
}

/** Reads the admitted caller anew. Fails as `admit` does, but for ended runs on routes that have their own answer. */
async function readmit(
  guarded: GuardedRoute,
  ctx: Koa.Context,
  { caller, db }: { caller: Caller; db?: Db },
): Promise<Readmitted> {
  try {
    return { caller: await admit(guarded, ctx, db), refusal: null }
  } catch (error) {
    const isEndedRun = error instanceof ApiError && error.code === 'auth_revoked' && caller.kind === 'agent'
    if (isEndedRun && guarded.route.errors.some((code) => endedRunCodes.includes(code)))
      return { caller, refusal: error }
    throw error
  }
}
