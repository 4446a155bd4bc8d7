import type Koa from 'koa'
import { limitHeaders } from '../http/limits.ts'
import { findOpenSignIn, finishSignIn, type OpenSignIn } from '../resources/connections/steps/finish-sign-in.ts'
import type { SignInDependencies } from './dependencies.ts'
import { html, page } from './html.ts'
import { paths } from './paths.ts'
import { PageRefusal, queryOf } from './request.ts'
import { sessionOf } from './session.ts'

/**
 * Answers where the provider of a service sends the browser back to. Whoever is at the browser must be who began the sign-in: otherwise
 * somebody could have a stranger approve, and get the stranger's account for their own workspace.
 */
export async function finishConnection(ctx: Koa.Context, deps: SignInDependencies): Promise<void> {
  // A prefetch must not end anything.
  if (ctx.method === 'HEAD') return void (ctx.body = '')
  const limit = await deps.limiter.take('connection_callback', `address:${ctx.ip}`)
  if (limit !== null) ctx.set(limitHeaders(limit))
  const { root, world } = deps
  const open = await findOpenSignIn(root, queryOf(ctx, 'state') ?? '', world.now())
  if (open === null) throw over()
  const session = await sessionOf(ctx, deps)
  if (session === null) return void (ctx.body = askPage(open, ctx.path + ctx.search))
  const by = { personUuid: session.personUuid, search: ctx.search }
  const end = await finishSignIn(deps, open, by)
  if (end.kind === 'over') throw over()
  if (end.kind === 'mismatch')
    throw new PageRefusal(
      403,
      'Not connected',
      'Somebody else began this connection. It was revoked, and the account was given to nobody.',
    )
  if (end.kind === 'failed')
    throw new PageRefusal(
      400,
      'Not connected',
      `${end.message} Nothing was connected. Begin again where you began: svc connection create.`,
    )
  ctx.body = connectedPage(open)
}

const over = () =>
  new PageRefusal(
    400,
    'Begin again',
    'This sign-in is over, was ended already, or was begun anew. Begin again: svc connection create.',
  )

const accountOf = ({ row }: OpenSignIn) => (row.accountLabel === '' ? 'an account' : `the account ${row.accountLabel}`)

function askPage(open: OpenSignIn, here: string): string {
  const { row, personName, workspaceName } = open
  return page(
    'Sign in to go on',
    html`<p class="warning">
        ${personName} wants to connect the workspace <strong>${workspaceName}</strong> to ${accountOf(open)} of
        <strong>${row.serviceLabel}</strong>. Agents of the workspace will use it.
      </p>
      <p>If you are not ${personName}, close this page: nothing is connected then.</p>
      <p>
        <a class="button main" href="${paths.signIn}?next=${encodeURIComponent(here)}">Sign in as ${personName}</a>
      </p>`,
  )
}

function connectedPage(open: OpenSignIn): string {
  return page(
    'Connected',
    html`<p>
      The workspace <strong>${open.workspaceName}</strong> is connected to ${accountOf(open)} of
      <strong>${open.row.serviceLabel}</strong>. You may close this page.
    </p>`,
  )
}
