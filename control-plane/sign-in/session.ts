import type Koa from 'koa'
import { base62 } from '../../shared/lib/base62.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Db } from '../db/open.ts'
import { hashToken, sessionCookie } from '../http/auth.ts'
import { newToken } from '../link/device-tokens.ts'
import { cookies, readCookie, setCookie } from './cookies.ts'
import type { SignInDependencies } from './dependencies.ts'
import { ownPath, paths } from './paths.ts'
import { findOpenSession, insertSession, revokeSession, type SessionRow } from './store.ts'

/** Dashboard sessions: made by signing in, ended by signing out or by time. */

/** A week after signing in, whatever happens meanwhile. */
export const sessionMs = 7 * 86_400_000
const nextMs = 15 * 60_000

export interface OpenSession extends SessionRow {
  cookie: string
}

export async function sessionOf(ctx: Koa.Context, { root, world }: SignInDependencies): Promise<OpenSession | null> {
  const cookie = readCookie(ctx, sessionCookie)
  if (cookie === null) return null
  const session = await findOpenSession(root, hashToken(cookie), world.now())
  return session === null ? null : { ...session, cookie }
}

export interface NewSignIn {
  userId: string
  /** The workspace to work in; null: the first joined. */
  workspaceId: string | null
}

/** The session's cookie. A browser has one session: the one before ends, so a cookie planted before is worth nothing. */
export async function openSession(
  db: Db,
  world: World,
  signIn: NewSignIn & { cookieBefore: string | null },
): Promise<string> {
  const at = world.now()
  if (signIn.cookieBefore !== null) await revokeSession(db, hashToken(signIn.cookieBefore), at)
  const cookie = newToken(world, 'svc_dsh_')
  await insertSession(db, {
    id: world.id('ses_'),
    userId: signIn.userId,
    workspaceId: signIn.workspaceId,
    tokenHash: hashToken(cookie),
    at,
    expiresAt: at + sessionMs,
  })
  return cookie
}

/** Gives the browser its cookie and sends it where it wanted to go. */
export function welcome(ctx: Koa.Context, { isHttps }: SignInDependencies, cookie: string): void {
  const wanted = readCookie(ctx, cookies.next)
  setCookie(ctx, { name: sessionCookie, value: cookie }, { isHttps, maxAgeMs: sessionMs })
  setCookie(ctx, { name: cookies.browser, value: '' }, { isHttps, maxAgeMs: 0, path: paths.signIn })
  setCookie(ctx, { name: cookies.next, value: '' }, { isHttps, maxAgeMs: 0, path: paths.signIn })
  goTo(ctx, (wanted === null ? null : ownPath(decode(wanted))) ?? paths.account)
}

export function forgetSession(ctx: Koa.Context, { isHttps }: SignInDependencies): void {
  setCookie(ctx, { name: sessionCookie, value: '' }, { isHttps, maxAgeMs: 0 })
}

/** To the sign-in page, and back here afterwards. */
export function askToSignIn(ctx: Koa.Context): void {
  goTo(ctx, `${paths.signIn}?next=${encodeURIComponent(ctx.path + ctx.search)}`)
}

export function rememberNext(ctx: Koa.Context, { isHttps }: SignInDependencies, path: string): void {
  const value = encodeURIComponent(path)
  setCookie(ctx, { name: cookies.next, value }, { isHttps, maxAgeMs: nextMs, path: paths.signIn })
}

/** The secret that ties forms and sign-ins under way to a browser without a session; made when there is none. */
export function browserSecret(ctx: Koa.Context, { world, isHttps }: SignInDependencies): string {
  const known = readCookie(ctx, cookies.browser)
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
