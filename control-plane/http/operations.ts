import type { WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { IncomingMessage } from 'node:http'
import type Koa from 'koa'
import type { Knex } from 'knex'
import { isMigrated } from '../db/migrate.ts'
import { writeStateOf } from '../db/transaction.ts'
import { fail } from '../../shared/api/errors.ts'
import { type CallerLookup } from './auth.ts'
import { hashToken } from './token-hash.ts'
import { hasRole } from './callers.ts'

export interface OperationsOptions {
  root: Knex
  metrics: { readonly contentType: string; read(): Promise<string> }
  callers: CallerLookup
  /** Reads the metrics from anywhere; null: there is none. */
  metricsToken: string | null
  /** Tells whether admins of this workspace stand for the whole server: it has no other. */
  isOnlyWorkspace: (workspaceId: WorkspaceUuid) => Promise<boolean>
  isDraining(): boolean
}

const paths = new Set(['/healthz', '/readyz', '/metrics'])

/** A write that the full disk of the database refused counts for so long: without any write nobody knows whether there is room again. */
const fullMs = 30_000

/**
 * Liveness (`/healthz`: the process answers), readiness (`/readyz`: the database answers with this release's schema, its disk
 * was not full a moment ago, and no drain is under way) and metrics. Callers on this machine need no token; `/metrics` from
 * elsewhere, or through a proxy, does (docs/adr/0053).
 */
export function operations(options: OperationsOptions): Koa.Middleware {
  return async (ctx, next) => {
    if (!paths.has(ctx.path)) return next()
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
      ctx.status = 405
      ctx.set('Allow', 'GET, HEAD')
      ctx.body = { error: 'Only GET is answered here.' }
      return
    }
    if (ctx.path === '/healthz') ctx.body = { status: 'ok' }
    else if (ctx.path === '/readyz') await ready(ctx, options)
    else await metrics(ctx, options)
  }
}

async function ready(ctx: Koa.Context, options: OperationsOptions): Promise<void> {
  const trouble = options.isDraining() ? 'draining' : await databaseTrouble(options.root)
  ctx.status = trouble === null ? 200 : 503
  ctx.body = trouble === null ? { status: 'ready' } : { status: 'not_ready', reason: trouble }
}

async function databaseTrouble(root: Knex): Promise<string | null> {
  try {
    if (!(await isMigrated(root))) return 'schema_outdated'
    const { fullAt, world } = writeStateOf(root)
    return fullAt !== null && world.monotonic() - fullAt < fullMs ? 'disk_full' : null
  } catch {
    return 'database_unavailable'
  }
}

async function metrics(ctx: Koa.Context, options: OperationsOptions): Promise<void> {
  if (!isFromHere(ctx.req)) await expectReader(ctx.req, options)
  ctx.type = options.metrics.contentType
  ctx.body = await options.metrics.read()
}

async function expectReader(request: IncomingMessage, options: OperationsOptions): Promise<void> {
  const { metricsToken, callers, isOnlyWorkspace } = options
  const bearer = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
  // Hashes have one length, and their comparison tells nothing of the token.
  if (metricsToken !== null && bearer !== undefined && hashToken(bearer) === hashToken(metricsToken)) return
  const caller = await callers.callerOf(request)
  if (hasRole(caller, 'admin') && (await isOnlyWorkspace(caller.workspaceId))) return
  fail('not_permitted', {
    message: 'The metrics are of the whole server: read them on its machine, or with the token in SVC_METRICS_TOKEN.',
  })
}

/** A proxy on this machine also comes from loopback: what it passes on for others says so. */
function isFromHere({ socket, headers }: IncomingMessage): boolean {
  const isPassedOn = headers['x-forwarded-for'] !== undefined || headers['forwarded'] !== undefined
  return !isPassedOn && /^(127\.|::1$|::ffff:127\.)/.test(socket.remoteAddress ?? '')
}
