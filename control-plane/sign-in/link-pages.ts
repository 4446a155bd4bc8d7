import type Koa from 'koa'
import type { Tx } from '../db/open.ts'
import { hashToken } from '../http/auth.ts'
import { findUser } from '../resources/members/store.ts'
import { listMemberships } from '../resources/workspaces/store.ts'
import { csrfToken } from './csrf.ts'
import type { SignInDependencies } from './dependencies.ts'
import { cookies, readCookie } from './cookies.ts'
import { linkPage } from './pages.ts'
import { headerOf, PageRefusal, queryOf, readOwnForm } from './request.ts'
import { browserSecret, openSession, sessionOf, welcome, type OpenSession } from './session.ts'
import { claimLink, findOpenLink, type LinkRow } from './store.ts'

/**
 * One-time links, made by the operator. Opening one signs the browser in, unless that could happen without the person
 * meaning it: where another site led here, where the browser only looks ahead, or where somebody else is signed in, a page
 * asks first.
 */
export async function openLink(ctx: Koa.Context, deps: SignInDependencies): Promise<void> {
  const token = queryOf(ctx, 'token') ?? ''
  const link = await findOpenLink(deps.root, hashToken(token), deps.world.now())
  if (link === null) return refuse()
  const session = await sessionOf(ctx, deps)
  if (ctx.method === 'GET' && isMeant(ctx) && (session === null || session.userId === link.userId))
    return signIn(ctx, deps, { link, session })
  const user = await findUser(deps.root, link.userId)
  if (user === null) return refuse()
  const csrf = csrfToken(browserSecret(ctx, deps))
  ctx.body = linkPage({ token, csrf, email: user.email, now: session?.email ?? null })
}

export async function confirmLink(ctx: Koa.Context, deps: SignInDependencies): Promise<void> {
  const fields = await readOwnForm(ctx, deps, readCookie(ctx, cookies.browser))
  const link = await findOpenLink(deps.root, hashToken(fields.get('token') ?? ''), deps.world.now())
  if (link === null) return refuse()
  return signIn(ctx, deps, { link, session: await sessionOf(ctx, deps) })
}

async function signIn(
  ctx: Koa.Context,
  deps: SignInDependencies,
  { link, session }: { link: LinkRow; session: OpenSession | null },
): Promise<void> {
  const { root, world, log } = deps
  const cookie = await root.transaction(async (tx: Tx) => {
    if (!(await claimLink(tx, link.id, world.now()))) return null
    if ((await listMemberships(tx, link.userId)).length === 0) return null
    const { userId, workspaceId } = link
    return openSession(tx, world, { userId, workspaceId, cookieBefore: session?.cookie ?? null })
  })
  if (cookie === null) return refuse()
  log.info({ user: link.userId }, 'signed in by a one-time link')
  welcome(ctx, deps, cookie)
}

/** Typed, pasted or opened from a program; browsers say where a page was opened from. */
function isMeant(ctx: Koa.Context): boolean {
  if (headerOf(ctx, 'sec-purpose')?.includes('prefetch') === true) return false
  const destination = headerOf(ctx, 'sec-fetch-dest')
  const isPage = destination === undefined || destination === 'document'
  return isPage && ['none', 'same-origin', undefined].includes(headerOf(ctx, 'sec-fetch-site'))
}

/** What is wrong with a link is not said: it is the same for whoever tries links. */
function refuse(): never {
  throw new PageRefusal(410, 'This link does not work', 'It is not known, was used, or is older than 15 minutes.')
}
