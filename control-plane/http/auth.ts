import { loginTokenPrefix } from '../../shared/lib/places.ts'
import { hashToken } from './token-hash.ts'
import type { IncomingMessage } from 'node:http'
import { fail } from '../../shared/api/errors.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Db } from '../db/open.ts'
import {
  findLogin,
  findRunOfToken,
  findSession,
  markLoginUsed,
  markSessionUsed,
  type CallerSessionRow,
} from './caller-store.ts'
import { failElsewhere, type AgentCaller, type Caller, type PersonCaller } from './callers.ts'
import { cookieName, cookieOf } from './cookie.ts'
import { headerOf } from './headers.ts'
import { isOwnSender, senderOf } from './sender.ts'
import type { RunTokenKeys } from './run-token-keys.ts'
import { createRunTokenReader, type RunTokenReader } from './run-token-reader.ts'

/**
 * Finds the caller of a request. Each request asks the database, so that a revocation
 * holds from the next request on; only the signature of an agent's token, which cannot change, is remembered.
 */
export interface CallerLookup {
  /** Finds the caller as `db` sees it: a transaction, or what is committed. Fails with 401 or 403. */
  callerOf(request: IncomingMessage, db?: Db): Promise<Caller>
}

export const sessionCookie = 'svc_session'
/** A use of a login token or session is noted at most this often. */
export const usedEveryMs = 60_000

/** The time without a use after which a session or token ends; null: never. */
export interface IdleLimits {
  sessionMs: number | null
  tokenMs: number | null
}
const neverIdle: IdleLimits = { sessionMs: null, tokenMs: null }

export interface CallerLookupOptions {
  db: Db
  runTokenKeys: RunTokenKeys
  world: World
  idle?: IdleLimits
  /** The address by which people reach the server; null: the host they ask for. */
  publicUrl?: string | null
}

export function createCallerLookup(options: CallerLookupOptions): CallerLookup {
  const { db: root, world, idle = neverIdle, publicUrl = null } = options
  const name = cookieName(sessionCookie, publicUrl?.startsWith('https:') ?? false)
  const tools = { world, idle, hashOf: createHasher(), readRunToken: createRunTokenReader(options) }
  return {
    async callerOf(request, db = root) {
      const lookup: Lookup = { ...tools, db }
      const wanted = headerOf(request, 'svc-workspace-id')?.toLowerCase() ?? null
      const authorization = request.headers.authorization
      if (authorization !== undefined) return callerOfBearer(lookup, authorization, wanted)
      const cookie = cookieOf(request, name)
      if (cookie === null) return fail('auth_missing')
      refuseForeignOrigin(request, publicUrl)
      return callerOfSession(lookup, cookie, wanted)
    },
  }
}

const rememberedHashes = 2_000

/** Remembers the hashes of tokens that were sent. A hash says nothing of whether its token counts: the database does, each time. */
function createHasher(): (token: string) => string {
  const hashes = new Map<string, string>()
  return (token) => {
    const known = hashes.get(token)
    if (known !== undefined) return known
    if (hashes.size >= rememberedHashes) hashes.delete(hashes.keys().next().value as string)
    const fresh = hashToken(token)
    hashes.set(token, fresh)
    return fresh
  }
}

interface Lookup {
  db: Db
  world: World
  idle: IdleLimits
  hashOf: (token: string) => string
  readRunToken: RunTokenReader
}

async function callerOfBearer(lookup: Lookup, authorization: string, wanted: string | null): Promise<Caller> {
  const token = /^Bearer +([!-~]{1,4096})$/i.exec(authorization)?.[1]
  if (token === undefined) return fail('auth_invalid', { message: 'The Authorization header is not a bearer token.' })
  const caller = token.startsWith(loginTokenPrefix)
    ? await callerOfLogin(lookup, token)
    : await callerOfRunToken(lookup, token)
  if (wanted !== null && wanted !== caller.workspaceId) failElsewhere(caller, 'Svc-Workspace-Id')
  return caller
}

async function callerOfLogin({ db, world, idle, hashOf }: Lookup, token: string): Promise<PersonCaller> {
  const row = await findLogin(db, hashOf(token))
  if (row === null) return fail('auth_invalid')
  const now = world.now()
  const caller = personOf(row, 'login_token', { now, idleMs: idle.tokenMs })
  if (row.last_used_at === null || row.last_used_at < now - usedEveryMs) await markLoginUsed(db, row.id, now)
  return caller
}

async function callerOfSession(
  { db, world, idle }: Lookup,
  cookie: string,
  wanted: string | null,
): Promise<PersonCaller> {
  const row = await findSession(db, { tokenHash: hashToken(cookie), workspaceId: wanted })
  if (row === null) return fail('auth_invalid')
  const now = world.now()
  const caller = personOf(row, 'dashboard_session', { now, idleMs: idle.sessionMs })
  if (row.last_used_at === null || row.last_used_at < now - usedEveryMs) await markSessionUsed(db, row.id, now)
  return caller
}

function personOf(
  row: CallerSessionRow,
  via: PersonCaller['via'],
  { now, idleMs }: { now: number; idleMs: number | null },
): PersonCaller {
  if (row.revoked_at !== null || (row.expires_at !== null && row.expires_at <= now)) fail('auth_invalid')
  if (idleMs !== null && (row.last_used_at ?? row.created_at) + idleMs <= now) fail('auth_invalid')
  if (row.workspace_id === null || row.role === null) return fail('not_permitted')
  return {
    kind: 'person',
    via,
    personUuid: row.user_id,
    personRef: row.public_id,
    name: row.name,
    email: row.email,
    workspaceId: row.workspace_id,
    role: row.role,
  }
}

/** A token is the run's for as long as the run lives and its lease has not gone to another device. */
async function callerOfRunToken({ db, readRunToken }: Lookup, token: string): Promise<AgentCaller> {
  const claims = await readRunToken(token)
  if (claims === null) return fail('auth_invalid')
  const row = await findRunOfToken(db, claims.runId, claims.agentRef)
  if (row === null || row.uuid === null || row.workspace_id !== claims.workspaceId) return fail('auth_invalid')
  if (row.token_generation !== claims.tokenGeneration) fail('auth.agent_jwt_revoked')
  if (row.ended_at !== null || row.deleted_at !== null || row.fence !== claims.fence) fail('auth_revoked')
  return {
    kind: 'agent',
    agentRef: claims.agentRef,
    agentUuid: row.uuid,
    workspaceId: row.workspace_id,
    runId: claims.runId,
    fence: claims.fence,
  }
}

/** A browser sends the cookie along with requests that other sites make; those must not act for the person. */
function refuseForeignOrigin(request: IncomingMessage, publicUrl: string | null): void {
  if (request.method === 'GET' || request.method === 'HEAD') return
  if (!isOwnSender(senderOf(request, publicUrl)))
    fail('http_exception', { message: 'This request comes from another site.' })
}
