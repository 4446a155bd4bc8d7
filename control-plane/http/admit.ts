import type Koa from 'koa'
import type { ErrorCode } from '../../shared/api/error-codes.ts'
import { ApiError, fail } from '../../shared/api/errors.ts'
import type { AnyRoute, Role } from '../../shared/api/route.ts'
import type { Db } from '../db/open.ts'
import { hasRole, type Caller } from './callers.ts'
import type { Kernel, RequestState } from './kernel.ts'

/**
 * Decides who may call a route. The caller is read when the headers of a request are there, and once more when its body is: the
 * body may come much later, after a token was revoked, a person left or a run ended.
 */
export interface Door {
  route: AnyRoute
  kernel: Pick<Kernel, 'callers'>
}

/** The caller, when the route is for such a one; as `db` sees it, when that is given. */
export async function admit({ route, kernel }: Door, ctx: Koa.Context, db?: Db): Promise<Caller> {
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

export interface Readmitted {
  caller: Caller
  /** The run has ended, and the route has an answer for that: it is asked, and fails with this when it does not refuse. */
  refusal: ApiError | null
}

/** Reads the admitted caller anew. Fails as `admit` does, but for ended runs on routes that have their own answer. */
export async function readmit(
  door: Door,
  ctx: Koa.Context,
  { caller, db }: { caller: Caller; db?: Db },
): Promise<Readmitted> {
  try {
    return { caller: await admit(door, ctx, db), refusal: null }
  } catch (error) {
    const isEndedRun = error instanceof ApiError && error.code === 'auth_revoked' && caller.kind === 'agent'
    if (isEndedRun && door.route.errors.some((code) => endedRunCodes.includes(code))) return { caller, refusal: error }
    throw error
  }
}
