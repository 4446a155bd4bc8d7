import type Koa from 'koa'
import { deviceFlow } from '../../shared/api/auth-internal.ts'
import { ApiError, fail } from '../../shared/api/errors.ts'
import type { RequestState } from '../http/kernel.ts'
import { showAccount, showSignIn, signOut } from './account-pages.ts'
import { finishConnection } from './connection-callback.ts'
import { showConnectionClient } from './connection-client.ts'
import type { SignInDependencies } from './dependencies.ts'
import { authorize, answerTokenPoll } from './device-flow/endpoints.ts'
import { decide, enterCode, showCodeForm } from './device-flow/pages.ts'
import { pagePolicy } from './html.ts'
import { countIfFailed } from './limit.ts'
import { confirmLink, openLink } from './link-pages.ts'
import { beginOidc, finishOidc } from './oidc/pages.ts'
import { problemPage } from './pages.ts'
import { paths } from './paths.ts'
import { PageRefusal } from './request.ts'

type Answer = (ctx: Koa.Context, deps: SignInDependencies) => Promise<void>

interface SignInRoute {
  /** The name of the route in the log and the metrics. */
  id: string
  GET?: Answer
  POST?: Answer
  /** The route answers JSON of OAuth, and has limits of its own. */
  isEndpoint?: true
  /** The route counts each request itself, whether it fails or not. */
  hasOwnLimit?: true
}

const routes: Readonly<Record<string, SignInRoute>> = {
  [paths.signIn]: { id: 'sign_in.page', GET: showSignIn },
  [paths.link]: { id: 'sign_in.link', GET: openLink, POST: confirmLink },
  [paths.oidc]: { id: 'sign_in.oidc', GET: beginOidc },
  [paths.oidcCallback]: { id: 'sign_in.oidc_callback', GET: finishOidc },
  [paths.account]: { id: 'sign_in.account', GET: showAccount },
  [paths.connectionCallback]: { id: 'connections.oauthCallback', GET: finishConnection, hasOwnLimit: true },
  [paths.connectionClient]: { id: 'connections.client', GET: showConnectionClient, hasOwnLimit: true },
  [paths.signOut]: { id: 'sign_in.sign_out', POST: signOut },
  [deviceFlow.pagePath]: { id: 'sign_in.device', GET: showCodeForm, POST: enterCode },
  [paths.decision]: { id: 'sign_in.decision', POST: decide },
  [deviceFlow.authorizePath]: { id: 'auth.device', POST: authorize, isEndpoint: true },
  [deviceFlow.tokenPath]: { id: 'auth.token', POST: answerTokenPoll, isEndpoint: true },
}

/** Serves the pages and endpoints of signing in; everything else goes to the next middleware. */
export function signInRoutes(deps: SignInDependencies): Koa.Middleware {
  return async (ctx, next) => {
    const route = Object.hasOwn(routes, ctx.path) ? routes[ctx.path]! : null
    if (route === null) return next()
    ;(ctx.state as RequestState).routeId = route.id
    const answer = ctx.method === 'HEAD' ? route.GET : route[ctx.method as 'GET' | 'POST']
    if (route.isEndpoint === true) {
      // Below /api a wrong method is an unknown route (docs/adr/0001).
      if (answer === undefined) fail('route_not_found', { headers: { Allow: 'POST' } })
      return answer(ctx, deps)
    }
    await answerPage(ctx, async () => {
      if (answer === undefined) return refuseMethod(ctx, route)
      if (route.hasOwnLimit === true) return answer(ctx, deps)
      await countIfFailed(ctx, deps, () => answer(ctx, deps))
    })
  }
}

function refuseMethod(ctx: Koa.Context, route: SignInRoute): never {
  ctx.set('Allow', [...(route.GET ? ['GET', 'HEAD'] : []), ...(route.POST ? ['POST'] : [])].join(', '))
  throw new PageRefusal(405, 'Not here', `This address does not answer ${ctx.method}.`)
}

/** Refusals are pages, too, since a person reads them. */
async function answerPage(ctx: Koa.Context, work: () => Promise<void>): Promise<void> {
  ctx.set('Cache-Control', 'no-store')
  ctx.set('Content-Security-Policy', pagePolicy)
  // Browsers without a referrer send `Origin: null` with forms, which looks like another site's.
  ctx.set('Referrer-Policy', 'same-origin')
  try {
    await work()
  } catch (error) {
    const problem = problemOf(error)
    if (problem === null) throw error
    if (error instanceof ApiError)
      for (const [name, value] of Object.entries(error.options.headers ?? {})) ctx.set(name, value)
    ctx.status = problem.status
    ctx.body = problemPage(problem)
    ;(ctx.state as RequestState).code = error instanceof ApiError ? error.code : 'page_refused'
  }
  if (typeof ctx.body === 'string') ctx.type = 'html'
}

/** Returns null for unexpected errors: the kernel answers and logs them. */
function problemOf(error: unknown): { status: number; title: string; message: string } | null {
  if (error instanceof PageRefusal) return error
  if (!(error instanceof ApiError) || error.status >= 500) return null
  const title = error.status === 429 ? 'Too many requests' : 'Refused'
  return { status: error.status, title, message: error.message }
}
