import type { PersonUuid, WorkspaceUuid } from '../../shared/lib/ids.ts'
import type Koa from 'koa'
import { base62, type World } from '../../shared/lib/world.ts'
import type { Db } from '../db/open.ts'
import { sessionCookie, usedEveryMs } from '../http/auth.ts'
import { hashToken, newToken } from '../http/token-hash.ts'
import { markSessionUsed } from '../http/caller-store.ts'
import { cookies, readCookie, setCookie } from './cookies.ts'
import type { SessionLimits, SignInDependencies } from './dependencies.ts'
import { ownPath, paths } from './paths.ts'
import { findOpenSession, insertSession, revokeSession, type SessionRow } from './store.ts'

// Dashboard sessions: made by signing in, ended by signing out or by time.

const nextMs = 15 * 60_000

export interface OpenSession extends SessionRow {
  cookie: string
}

export async function sessionOf(ctx: Koa.Context, deps: SignInDependencies): Promise<OpenSession | null> {
  const { root, world } = deps
  const cookie = readCookie(ctx, deps, sessionCookie)
  if (cookie === null) return null
  const now = world.now()
  const session = await findOpenSession(root, hashToken(cookie), { now, usedSince: now - deps.sessions.idleMs })
  if (session !== null && (session.lastUsedAt ?? 0) < now - usedEveryMs) await markSessionUsed(root, session.id, now)
  return session === null ? null : { ...session, cookie }
}

export interface NewSignIn {
  personUuid: PersonUuid
  /** The workspace to work in; null: the first joined. */
  workspaceId: WorkspaceUuid | null
}

/**
 * Returns the session's cookie. A browser has one session: the earlier one ends, so a cookie planted before is
 * worthless.
 */
export async function openSession(
  db: Db,
  world: World,
  signIn: NewSignIn & { cookieBefore: string | null; sessions: SessionLimits },
): Promise<string> {
  const at = world.now()
  if (signIn.cookieBefore !== null) await revokeSession(db, hashToken(signIn.cookieBefore), at)
  const cookie = newToken(world, 'svc_dsh_')
  await insertSession(db, {
    id: world.id('ses_'),
    personUuid: signIn.personUuid,
    workspaceId: signIn.workspaceId,
    tokenHash: hashToken(cookie),
    createdAt: at,
    expiresAt: at + signIn.sessions.totalMs,
  })
  return cookie
}

/** Sets the browser's cookie and sends it to the page it wanted. */
export function welcome(ctx: Koa.Context, deps: SignInDependencies, cookie: string): void {
  const { isHttps, sessions } = deps
  const wanted = readCookie(ctx, deps, cookies.next)
  setCookie(ctx, { name: sessionCookie, value: cookie }, { isHttps, maxAgeMs: sessions.totalMs })
  setCookie(ctx, { name: cookies.browser, value: '' }, { isHttps, maxAgeMs: 0, path: paths.signIn })
  setCookie(ctx, { name: cookies.next, value: '' }, { isHttps, maxAgeMs: 0, path: paths.signIn })
  goTo(ctx, (wanted === null ? null : ownPath(decode(wanted))) ?? paths.account)
}

export function clearSessionCookie(ctx: Koa.Context, { isHttps }: SignInDependencies): void {
  setCookie(ctx, { name: sessionCookie, value: '' }, { isHttps, maxAgeMs: 0 })
}

/** Redirects to the sign-in page, and back here afterwards. */
export function askToSignIn(ctx: Koa.Context): void {
  goTo(ctx, `${paths.signIn}?next=${encodeURIComponent(ctx.path + ctx.search)}`)
}

export function rememberNext(ctx: Koa.Context, { isHttps }: SignInDependencies, path: string): void {
  const value = encodeURIComponent(path)
  setCookie(ctx, { name: cookies.next, value }, { isHttps, maxAgeMs: nextMs, path: paths.signIn })
}

/** The secret that ties forms and unfinished sign-ins to a browser without a session; made when there is none. */
export function browserSecret(ctx: Koa.Context, deps: SignInDependencies): string {
  const { world, isHttps } = deps
  const known = readCookie(ctx, deps, cookies.browser)
  if (known !== null && /^[0-9A-Za-z]{43}$/.test(known)) return known
  const value = base62(world.bytes(64), 43)
  setCookie(ctx, { name: cookies.browser, value }, { isHttps, maxAgeMs: nextMs, path: paths.signIn })
  return value
}

export function goTo(ctx: Koa.Context, path: string): void {
  ctx.status = 303
  ctx.set('Location', path)
  ctx.body = null
  ctx.status = 303
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}
