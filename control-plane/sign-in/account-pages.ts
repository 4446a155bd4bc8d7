import type Koa from 'koa'
import { toTimestamp } from '../../shared/api/ids.ts'
import { hashToken } from '../http/token-hash.ts'
import { listMemberships } from '../resources/workspaces/store.ts'
import { csrfToken } from './csrf.ts'
import type { SignInDependencies } from './dependencies.ts'
import { accountPage, signedOutPage, signInPage } from './pages.ts'
import { ownPath, paths } from './paths.ts'
import { queryOf, readOwnForm } from './request.ts'
import { askToSignIn, clearSessionCookie, goTo, rememberNext, sessionOf } from './session.ts'
import { revokeSession } from './store.ts'

// The pages where signing in begins and ends.

export async function showSignIn(ctx: Koa.Context, deps: SignInDependencies): Promise<void> {
  const next = ownPath(queryOf(ctx, 'next') ?? '')
  if ((await sessionOf(ctx, deps)) !== null) return goTo(ctx, next ?? paths.account)
  if (next !== null) rememberNext(ctx, deps, next)
  ctx.body = signInPage({ oidcHost: deps.oidc?.issuerHost ?? null })
}

export async function showAccount(ctx: Koa.Context, deps: SignInDependencies): Promise<void> {
  const session = await sessionOf(ctx, deps)
  if (session === null) return askToSignIn(ctx)
  const memberships = await listMemberships(deps.root, session.personUuid)
  ctx.body = accountPage({
    csrf: csrfToken(session.cookie),
    name: session.name,
    email: session.email,
    endsAt: toTimestamp(session.expiresAt),
    workspaces: memberships.map(({ workspace, role }) => ({ name: workspace.name, role })),
  })
}

export async function signOut(ctx: Koa.Context, deps: SignInDependencies): Promise<void> {
  const session = await sessionOf(ctx, deps)
  if (session !== null) {
    await readOwnForm(ctx, deps, session.cookie)
    await revokeSession(deps.root, hashToken(session.cookie), deps.world.now())
    deps.log.info({ user: session.personUuid }, 'signed out')
  }
  clearSessionCookie(ctx, deps)
  ctx.body = signedOutPage()
}
