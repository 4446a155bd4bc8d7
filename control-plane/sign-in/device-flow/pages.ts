import type Koa from 'koa'
import { inTransaction } from '../../db/transaction.ts'
import { z } from 'zod'
import { uuid } from '../../../shared/api/ids.ts'
import { hashToken } from '../../http/token-hash.ts'
import { listMemberships } from '../../resources/workspaces/store.ts'
import { csrfToken } from '../csrf.ts'
import type { SignInDependencies } from '../dependencies.ts'
import { codePage, confirmPage, decidedPage } from '../pages.ts'
import { PageRefusal, queryOf, readOwnForm } from '../request.ts'
import { askToSignIn, sessionOf, type OpenSession } from '../session.ts'
import { deviceFlowLimits, mayDecide, readUserCode, showUserCode } from './rules.ts'
import { claimGrantDecision, claimGuess, findDeviceGrant, findGrantByUserCode, type GrantRow } from './store.ts'

// The person's half of the device flow: enter the code, see who asks, decide.

/** A code in the address only fills in the field. The person must send it, and so looks at it. */
export async function showCodeForm(ctx: Koa.Context, deps: SignInDependencies): Promise<void> {
  const session = await sessionOf(ctx, deps)
  if (session === null) return askToSignIn(ctx)
  const typed = readUserCode(queryOf(ctx, 'user_code') ?? '')
  ctx.body = codePage({ ...formOf(session), code: typed === null ? '' : showUserCode(typed), problem: null })
}

export async function enterCode(ctx: Koa.Context, deps: SignInDependencies): Promise<void> {
  const session = await sessionOf(ctx, deps)
  const fields = await readOwnForm(ctx, deps, session?.cookie ?? null)
  if (session === null) return askToSignIn(ctx)
  const { root, world } = deps
  const at = world.now()
  // Counted before the code is checked, so that guesses sent at once all count.
  const { guesses, guessWindowMs } = deviceFlowLimits
  const count = await claimGuess(root, { personUuid: session.personUuid, at, windowMs: guessWindowMs })
  if (count > guesses) {
    ctx.set('Retry-After', String(guessWindowMs / 1000))
    throw new PageRefusal(429, 'Too many codes', 'You entered many codes. Wait ten minutes, then type svc login again.')
  }
  const code = readUserCode(fields.get('code') ?? '')
  const grant = code === null ? null : await findGrantByUserCode(root, hashToken(code))
  if (code === null || grant === null || !mayDecide(grant, at)) {
    ctx.status = 422
    const problem =
      'This code is not known, was used, or is older than ten minutes. Type svc login again for a new one.'
    ctx.body = codePage({ ...formOf(session), code: '', problem })
    return
  }
  ctx.body = await confirmationOf(deps, { session, grant, code })
}

async function confirmationOf(
  { root }: SignInDependencies,
  { session, grant, code }: { session: OpenSession; grant: GrantRow; code: string },
): Promise<string> {
  const memberships = await listMemberships(root, session.personUuid)
  if (memberships.length === 0) throw new PageRefusal(403, 'No workspace', 'You belong to no workspace any more.')
  return confirmPage({
    ...formOf(session),
    grantId: grant.id,
    code: showUserCode(code),
    clientName: grant.clientName,
    address: grant.address,
    workspaces: memberships.map(({ workspace, role }) => ({
      id: workspace.id,
      name: workspace.name,
      role,
      isChosen: workspace.id === session.workspaceId,
    })),
  })
}

const decisionForm = z.object({
  grant: z.string().regex(/^dag_[0-9A-Za-z]{16}$/),
  workspace: uuid,
  decision: z.enum(['approve', 'deny']),
})

export async function decide(ctx: Koa.Context, deps: SignInDependencies): Promise<void> {
  const session = await sessionOf(ctx, deps)
  const fields = await readOwnForm(ctx, deps, session?.cookie ?? null)
  if (session === null) return askToSignIn(ctx)
  const form = decisionForm.safeParse(Object.fromEntries(fields))
  if (!form.success) throw new PageRefusal(400, 'Not read', 'This is not a form of this page.')
  const { root, world, log } = deps
  const { grant: grantId, workspace: workspaceId, decision } = form.data
  const isApproved = decision === 'approve'
  const isDecided = await inTransaction(root, async (tx) => {
    const own = await listMemberships(tx, session.personUuid)
    if (!own.some(({ workspace }) => workspace.id === workspaceId))
      throw new PageRefusal(403, 'Refused', 'You are not a member of this workspace.')
    if ((await findDeviceGrant(tx, grantId)) === null) return false
    const status = isApproved ? 'approved' : 'denied'
    return claimGrantDecision(tx, grantId, { status, personUuid: session.personUuid, workspaceId, at: world.now() })
  })
  if (!isDecided) throw new PageRefusal(410, 'Too late', 'This was decided before, or is older than ten minutes.')
  log.info({ user: session.personUuid, workspaceId, isApproved }, 'a login of svc was decided')
  ctx.body = decidedPage(isApproved)
}

function formOf(session: OpenSession): { csrf: string; email: string } {
  return { csrf: csrfToken(session.cookie), email: session.email }
}
