import type { IncomingMessage, ServerResponse } from 'node:http'
import helmet from 'helmet'
import Koa from 'koa'
import { Router } from '@koa/router'
import { ApiError } from '../../shared/api/errors.ts'
import type { World } from '../../shared/lib/world.ts'
import { clientAddress, setHeaders } from './headers.ts'
import type { ImplementedRoute } from './implement.ts'
import type { Kernel, RequestState } from './kernel.ts'
import { declaredRefusal, sendRefusal } from './reply.ts'
import { refuseUnserved } from './http-server.ts'
import { compileRoute, type Compiled } from './mount.ts'

/**
 * The HTTP application: every request gets an id, safe headers, an answer whatever is thrown, and one line in the log.
 * `others` are middlewares for what is not of the contract (health, metrics, pages).
 */
export function createApp(
  implemented: readonly ImplementedRoute[],
  kernel: Kernel,
  others: readonly Koa.Middleware[] = [],
): Koa {
  const app = new Koa()
  // Koa reads the leftmost address of X-Forwarded-For, which the client chooses.
  Object.defineProperty(app.request, 'ip', {
    get(this: Koa.Request) {
      return clientAddress(this.req, kernel.trustedProxies)
    },
  })
  const routes = new Map(implemented.map(({ route }) => [route.id, route] as const))
  const table = createRouteTable(implemented, kernel)
  const nextRequestId = requestIds(kernel.world)
  const headers = Object.entries(safeHeaders(kernel.isHttps)).flat()
  // Errors of the socket reach this listener after the answer is decided; without one Koa prints them.
  app.on('error', (error: unknown) => kernel.log.debug({ err: error }, 'a connection failed'))
  const noteProxy = proxyNoter(kernel)
  app.use(async (ctx, next) => {
    noteProxy(ctx.req)
    const requestId = nextRequestId()
    const state: RequestState = {
      requestId,
      routeId: null,
      caller: null,
      code: null,
      headers: ['Request-Id', requestId, ...headers],
    }
    ctx.state = state
    const startedAt = kernel.world.monotonic()
    const found = table.find(ctx.req.method ?? '', ctx.path)
    try {
      refuseUnserved(ctx.req)
      if (found === null) await answerOther(ctx, next)
      else {
        state.headers.push(...notStored)
        await found.serve(ctx, found.params)
      }
    } catch (error) {
      const route = state.routeId === null ? null : (routes.get(state.routeId) ?? null)
      const refusal = declaredRefusal(route, error, kernel.isChecking)
      state.code = 'id' in refusal ? refusal.id : refusal.code
      // 501 is what a route is written down to answer, no failure of ours.
      if (refusal.status >= 500 && refusal.status !== 501) logFailure(kernel, { state, error, refusal })
      // A stream that fails has its status sent already: all that is left is to end it.
      if (ctx.res.headersSent) ctx.res.destroy()
      else sendRefusal(ctx, refusal)
    }
    finish(kernel, ctx, startedAt)
  })
  for (const middleware of others) app.use(middleware)
  app.use((ctx) => refuseUnknown(table, ctx))
  return app
}

/** Says once that a proxy seems to stand before the server, which then takes all who come through it for one address. */
function proxyNoter({ log, trustedProxies }: Kernel): (request: IncomingMessage) => void {
  let isNoted = trustedProxies > 0
  return ({ headers }) => {
    if (isNoted || headers['x-forwarded-for'] === undefined) return
    isNoted = true
    log.warn(
      {},
      'a request came with X-Forwarded-For, which is ignored: if a proxy stands before this server, set SVC_TRUSTED_PROXIES to the number of proxies, else all who come through it count as one address',
    )
  }
}

const notStored = ['Cache-Control', 'no-store'] as const

/** Answers that are not of the contract go through Koa, and may have headers of their own in place of these. */
async function answerOther(ctx: Koa.Context, next: Koa.Next): Promise<void> {
  const state = ctx.state as RequestState
  setHeaders(ctx.res, state.headers)
  state.headers = []
  await next()
}

function refuseUnknown(table: RouteTable, ctx: Koa.Context): never {
  ctx.set(...notStored)
  const methods = table.allowed(ctx.path)
  const headers: Record<string, string> = methods.length === 0 ? {} : { Allow: methods.join(', ') }
  throw new ApiError('route_not_found', {
    headers,
    message: `No route answers ${ctx.method} ${ctx.path.slice(0, 200)}.`,
  })
}

/** `req_` and 16 characters: ten are random and of this start of the server, six count its requests. */
function requestIds(world: World): () => string {
  const start = world.id('req_').slice(0, -6)
  let count = 0
  return () => start + (++count % 36 ** 6).toString(36).padStart(6, '0')
}

/**
 * The headers that helmet sets, worked out once. The API serves data, never a page: nothing may be loaded by it or frame it. Headers
 * that only matter to pages are left out.
 */
function safeHeaders(isHttps: boolean): Record<string, string> {
  const set: Record<string, string> = {}
  const response = { setHeader: (name: string, value: string) => (set[name] = value), removeHeader: () => undefined }
  const middleware = helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    },
    // Sub-domains are left out: other servers than this one answer there.
    strictTransportSecurity: isHttps && { includeSubDomains: false },
    originAgentCluster: false,
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
  })
  middleware({} as IncomingMessage, response as unknown as ServerResponse, () => undefined)
  return set
}

function logFailure(
  kernel: Kernel,
  { state, error, refusal }: { state: RequestState; error: unknown; refusal: Error },
) {
  const err = error instanceof ApiError && error.options.cause !== undefined ? error.options.cause : error
  const detail = error instanceof ApiError ? error.options.logDetail : undefined
  const cause = refusal === error ? undefined : (refusal.cause as Error | undefined)?.message
  kernel.log.error(
    { err, requestId: state.requestId, route: state.routeId, code: state.code, detail, cause },
    'a request failed',
  )
}

/** The path is not logged: it may hold a secret (webhooks, shares). The route's id says enough. */
function finish(kernel: Kernel, ctx: Koa.Context, startedAt: number): void {
  const { requestId, routeId, caller, code } = ctx.state as RequestState
  const method = ctx.req.method ?? ''
  const status = ctx.res.statusCode
  const durationMs = kernel.world.monotonic() - startedAt
  const who =
    caller === null
      ? {}
      : caller.kind === 'person'
        ? { user: caller.personRef }
        : { agent: caller.agentRef, run: caller.runId }
  kernel.log.info(
    {
      requestId,
      route: routeId,
      method,
      status,
      ...(code === null ? {} : { code }),
      ms: Math.round(durationMs * 10) / 10,
      ...who,
    },
    'request',
  )
  kernel.observe?.({ requestId, routeId, method, status, code, durationMs })
}

/** Finds a request's route; `allowed` returns the methods that its path has. */
interface RouteTable {
  find(method: string, path: string): FoundRoute | null
  allowed(path: string): string[]
}

interface FoundRoute {
  serve: Compiled
  /** Decoded; what cannot be decoded is as it came. */
  params: Readonly<Record<string, string>>
}

/**
 * Makes a router for each first word and length of a path, so that a request is matched against a few routes and not against all of the
 * contract. The routers only find: the function that they find is called at once, since each route is one function and composing a chain
 * of it for each request costs several times what finding it does.
 */
export function createRouteTable(implemented: readonly ImplementedRoute[], kernel: Kernel): RouteTable {
  const routers = new Map<string, Router>()
  const served = new Map<unknown, Compiled>()
  for (const one of [...implemented].sort(fixedFirst)) {
    const { method, path, aliases, base } = one.route
    const serve = compileRoute(one, kernel)
    for (const full of [path, ...aliases].map((each) => base + each)) {
      const router = routers.get(placeOf(full)) ?? new Router({ sensitive: true })
      routers.set(placeOf(full), router)
      served.set(
        router.register(full.replaceAll(/\{(\w+)\}/g, ':$1'), [method], () => undefined),
        serve,
      )
    }
  }
  return {
    find(method, path) {
      const layer = routers.get(placeOf(path))?.match(path, method).pathAndMethod[0]
      const serve = served.get(layer)
      if (layer === undefined || serve === undefined) return null
      return { serve, params: layer.params(path, layer.captures(path)) }
    },
    allowed(path) {
      const matched = routers.get(placeOf(path))?.match(path, 'NONE').path ?? []
      return [...new Set(matched.flatMap((layer) => layer.methods))].sort()
    },
  }
}

/** `agents` of `/api/v1/agents/...`, `openapi.json` of `/api/openapi.json`, with the number of words. */
function placeOf(path: string): string {
  const words = path.split('/')
  // A slash at the end makes no difference.
  const count = words.at(-1) === '' ? words.length - 1 : words.length
  return `${words[2] === 'v1' ? words[3] : words[2]} ${count}`
}

/** `/workspaces/stats` is looked at before `/workspaces/{workspaceId}`. */
function fixedFirst(a: ImplementedRoute, b: ImplementedRoute): number {
  const parameters = ({ route }: ImplementedRoute) => route.path.split('{').length
  return parameters(a) - parameters(b)
}
