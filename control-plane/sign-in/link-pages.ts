import type Koa from 'koa'
import { hashToken } from '../http/token-hash.ts'
import { findUser } from '../resources/members/store.ts'
import { listMemberships } from '../resources/workspaces/store.ts'
import { csrfToken } from './csrf.ts'
import type { SignInDependencies } from './dependencies.ts'
import { cookies, readCookie } from './cookies.ts'
import { linkPage } from './pages.ts'
import { PageRefusal, queryOf, readOwnForm } from './request.ts'
import { browserSecret, openSession, sessionOf, welcome, type OpenSession } from './session.ts'
import { claimLink, findOpenLink, type LinkRow } from './store.ts'
import { inTransaction } from '../db/transaction.ts'

/**
 * Shows a page with a button for a one-time link, made by the operator: programs that check the links in mails open them, too, and must not
 * use them up.
 */
export async function openLink(ctx: Koa.Context, deps: SignInDependencies): Promise<void> {
  const token = queryOf(ctx, 'token') ?? ''
  const link = await findOpenLink(deps.root, hashToken(token), deps.world.now())
  if (link === null) return refuse()
  const session = await sessionOf(ctx, deps)
  const user = await findUser(deps.root, link.personUuid)
  if (user === null) return refuse()
  const csrf = csrfToken(browserSecret(ctx, deps))
  ctx.body = linkPage({
    token,
    csrf,
    email: user.email,
    now: session === null || session.personUuid === link.personUuid ? null : session.email,
  })
}

export async function confirmLink(ctx: Koa.Context, deps: SignInDependencies): Promise<void> {
  const fields = await readOwnForm(ctx, deps, readCookie(ctx, deps, cookies.browser))
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
  const cookie = await inTransaction(root, async (tx) => {
    if (!(await claimLink(tx, link.id, world.now()))) return null
    if ((await listMemberships(tx, link.personUuid)).length === 0) return null
    const { personUuid, workspaceId } = link
    return openSession(tx, world, {
      personUuid,
      workspaceId,
      cookieBefore: session?.cookie ?? null,
      sessions: deps.sessions,
    })
  })
  if (cookie === null) return refuse()
  log.info({ user: link.personUuid }, 'signed in by a one-time link')
  welcome(ctx, deps, cookie)
}

/** The reason is not told: it is the same answer for whoever tries links. */
function refuse(): never {
  throw new PageRefusal(410, 'This link does not work', 'It is not known, was used, or is older than 15 minutes.')
}
