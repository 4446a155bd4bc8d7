import type { PersonUuid } from '../../../shared/lib/ids.ts'
import type Koa from 'koa'
import type { Tx } from '../../db/open.ts'
import { hashToken } from '../../http/token-hash.ts'
import { findUserByEmail } from '../../resources/members/store.ts'
import { listMemberships } from '../../resources/workspaces/store.ts'
import { cookies, readCookie } from '../cookies.ts'
import { isSame } from '../csrf.ts'
import type { SignInDependencies } from '../dependencies.ts'
import { paths } from '../paths.ts'
import { addressFor, PageRefusal, queryOf } from '../request.ts'
import { browserSecret, goTo, openSession, sessionOf, welcome } from '../session.ts'
import { OidcTrouble, type OidcClient, type OidcPerson } from './client.ts'
import { claimAttempt, findUserOfIdentity, hasIdentity, insertAttempt, insertIdentity, lockUser } from './store.ts'
import { inTransaction } from '../../db/transaction.ts'

/** Signing in at the issuer. The browser goes there with a state that works once, for ten minutes, in this browser. */
const attemptMs = 10 * 60_000

export async function beginOidc(ctx: Koa.Context, deps: SignInDependencies): Promise<void> {
  const oidc = oidcOf(deps)
  // A prefetch must not begin anything.
  if (ctx.method === 'HEAD') return void (ctx.body = '')
  const { url, attempt } = await atIssuer(deps, () => oidc.begin(addressFor(ctx, deps) + paths.oidcCallback))
  await insertAttempt(deps.root, {
    stateHash: hashToken(attempt.state),
    browserHash: hashToken(browserSecret(ctx, deps)),
    codeVerifier: attempt.codeVerifier,
    nonce: attempt.nonce,
    expiresAt: deps.world.now() + attemptMs,
  })
  goTo(ctx, url)
}

export async function finishOidc(ctx: Koa.Context, deps: SignInDependencies): Promise<void> {
  const oidc = oidcOf(deps)
  const { root, world, log } = deps
  const state = queryOf(ctx, 'state') ?? ''
  const browser = readCookie(ctx, deps, cookies.browser) ?? ''
  const attempt = ctx.method === 'GET' ? await claimAttempt(root, hashToken(state)) : null
  const isOwn = attempt !== null && isSame(attempt.browserHash, hashToken(browser)) && world.now() < attempt.expiresAt
  if (!isOwn) throw new PageRefusal(410, 'Start again', 'This sign-in is over, or was begun in another browser.')
  const url = new URL(ctx.path + ctx.search, addressFor(ctx, deps))
  const person = await atIssuer(deps, () => oidc.finish(url, { ...attempt, state }))
  const before = await sessionOf(ctx, deps)
  const signedIn = await inTransaction(root, async (tx) => {
    const found = await findPerson(tx, { oidc, person, at: world.now() })
    if ('refusal' in found) return found
    const { personUuid } = found
    if ((await listMemberships(tx, personUuid)).length === 0) return { refusal: notKnown(person) }
    const session = { personUuid, workspaceId: null, cookieBefore: before?.cookie ?? null, sessions: deps.sessions }
    return { personUuid, cookie: await openSession(tx, world, session) }
  })
  if ('refusal' in signedIn) throw new PageRefusal(403, 'Not known here', signedIn.refusal)
  log.info({ user: signedIn.personUuid }, 'signed in at the issuer')
  welcome(ctx, deps, signedIn.cookie)
}

const notKnown = ({ verifiedEmail }: OidcPerson): string =>
  verifiedEmail === null
    ? 'The issuer has not verified an email address of your account, and nobody here is known by it. Have it verified there, then try again.'
    : `Nobody here signs in as ${verifiedEmail}. Ask your operator to add you (svc-server user add --email ${verifiedEmail}).`

/** Returns a text for the person who has this address alone, as the issuer has verified. */
const knownAsOther = (email: string): string =>
  `${email} has signed in here with another account of the issuer. If that was you, ask your operator to forget it (svc-server user unlink --email ${email}), then sign in again.`

/**
 * Finds a person by the identity seen before, or at the first sign-in by the address, which the issuer must have
 * verified. From then on the identity counts, whatever happens to the address.
 */
async function findPerson(
  tx: Tx,
  { oidc, person, at }: { oidc: OidcClient; person: OidcPerson; at: number },
): Promise<{ personUuid: PersonUuid } | { refusal: string }> {
  const identity = { issuer: oidc.issuer, subject: person.subject }
  const known = await findUserOfIdentity(tx, identity)
  if (known !== null) return { personUuid: known }
  const user = person.verifiedEmail === null ? null : await findUserByEmail(tx, person.verifiedEmail)
  if (user === null) return { refusal: notKnown(person) }
  // The address may belong to somebody else at the issuer now. Of two who come at once the second sees the first.
  await lockUser(tx, user.id)
  if (await hasIdentity(tx, { issuer: identity.issuer, personUuid: user.id }))
    return { refusal: knownAsOther(user.email) }
  await insertIdentity(tx, { ...identity, personUuid: user.id, at })
  return { personUuid: user.id }
}

function oidcOf({ oidc }: SignInDependencies): OidcClient {
  if (oidc === null) throw new PageRefusal(404, 'Not offered', 'Signing in at an issuer is not set up on this server.')
  return oidc
}

async function atIssuer<T>({ log }: SignInDependencies, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof OidcTrouble)) throw error
    log.warn({ err: error }, 'signing in at the issuer failed')
    throw new PageRefusal(
      502,
      'Signing in failed',
      'The issuer could not be reached, or did not sign you in. Try again.',
    )
  }
}
