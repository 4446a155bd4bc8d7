import type { PersonUuid, WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import type { World } from '../../../../shared/lib/world.ts'
import type { ServiceCatalog } from '../../../catalog/services.ts'
import type { Db, Tx } from '../../../db/open.ts'
import { inTransaction } from '../../../db/transaction.ts'
import { hashToken } from '../../../http/token-hash.ts'
import type { Outbound } from '../../../outbound/outbound.ts'
import type { Log } from '../../../process/log.ts'
import type { Vault } from '../../../vault/vault.ts'
import { findUser } from '../../members/store.ts'
import { findWorkspace, listMemberships } from '../../workspaces/store.ts'
import { putConnectionClient } from '../own/client-store.ts'
import { openAttempt, type SignInAttempt } from '../own/credential.ts'
import { sealClientSecret } from '../mcp-client.ts'
import { providerOfAttempt } from '../own/mcp-sign-in.ts'
import { exchangeCode, providerOf, ProviderRefusal, ProviderTrouble, withdrawTokens } from '../own/oauth.ts'
import { timesOf } from '../renewal.ts'
import { statusAt } from '../rules.ts'
import { findService, mcpServerIdOf } from '../service-of.ts'
import { claimSignIn, findSignIn, type SignInRow } from '../sign-in-store.ts'
import { findConnectionById, type ConnectionRow } from '../store.ts'
import { approve, withdraw } from './change.ts'
import { attachSignIn, findServerOfSignIn } from './server-sign-in.ts'

// Finishes a sign-in when a browser comes back from the provider of a service.

export interface FinishDependencies {
  root: Knex
  world: World
  log: Log
  vault: Vault
  services: ServiceCatalog
  outbound: Pick<Outbound, 'fetch'>
}

/** A sign-in that is open, with what is told of it to who has its state. */
export interface OpenSignIn {
  signIn: SignInRow
  row: ConnectionRow
  personName: string
  workspaceName: string
}

/** null: it is over, was ended, or there was none. */
export async function findOpenSignIn(db: Db, state: string, now: number): Promise<OpenSignIn | null> {
  const signIn = await findSignIn(db, hashToken(state))
  if (signIn === null || signIn.claimedAt !== null || signIn.expiresAt <= now) return null
  const row = await findConnectionById(db, signIn.connectionId)
  if (row === null || statusAt(row, now) !== 'pending') return null
  const [person, workspace] = [await findUser(db, signIn.personUuid), await findWorkspace(db, row.workspaceId)]
  return person && workspace && { signIn, row, personName: person.name, workspaceName: workspace.name }
}

export type SignInOutcome =
  | { kind: 'connected'; row: ConnectionRow }
  /** Somebody else came back than who began it: the connection is revoked. */
  | { kind: 'mismatch' }
  /** Somebody ended it, or began it anew, in the meantime. */
  | { kind: 'over' }
  | { kind: 'failed'; message: string }

/** Ends a sign-in with the person at the browser; `search` is the query with which it came. The state works no more after that. */
export async function finishSignIn(
  deps: FinishDependencies,
  { signIn, row }: OpenSignIn,
  { personUuid, search }: { personUuid: PersonUuid; search: string },
): Promise<SignInOutcome> {
  const { root, world, log } = deps
  const told = { connectionId: row.id, service: row.serviceId, user: personUuid }
  if (!(await isSamePerson(root, { signIn, row, personUuid }))) {
    await inTransaction(root, (tx) => revokeMismatch(tx, signIn, world))
    log.warn(told, 'somebody else came back from the provider: the connection is revoked')
    return { kind: 'mismatch' }
  }
  if (!(await inTransaction(root, (tx) => claimSignIn(tx, signIn.stateHash, world.now())))) return { kind: 'over' }
  const gotten = await exchange(deps, { signIn, row, search })
  if ('kind' in gotten) {
    log.warn({ ...told, reason: gotten.message }, 'a sign-in at a provider failed')
    return gotten
  }
  const { provider, held, scopes, attempt } = gotten
  const stored = await inTransaction(root, async (tx) => {
    const [mine, now] = [await findSignIn(tx, signIn.stateHash), await findConnectionById(tx, row.id)]
    if (mine === null || now === null || statusAt(now, world.now()) !== 'pending') return null
    const serverId = mcpServerIdOf(now.serviceId)
    const serverUrl = attempt.mcp?.serverUrl ?? ''
    const server = serverId === null ? null : await findServerOfSignIn(tx, now, { serverId, serverUrl })
    // The server is at another address by now, or of somebody else.
    if (serverId !== null && server === null) return null
    const active = await approve({ tx, world, vault: deps.vault }, { row: now, held, scopes })
    await storeClient(tx, { workspaceId: now.workspaceId, attempt }, deps)
    if (server !== null) await attachSignIn(tx, active, server, world)
    return active
  })
  if (stored !== null) {
    log.info(told, 'connection set up')
    return { kind: 'connected', row: stored }
  }
  // Nobody here has these tokens.
  await withdrawTokens(provider, held, deps.outbound).catch((error: unknown) =>
    log.warn({ ...told, reason: (error as Error).message }, 'tokens that nobody needs could not be withdrawn'),
  )
  return { kind: 'over' }
}

/** Returns whether this person began the sign-in, and is a member of the workspace yet. */
async function isSamePerson(
  db: Db,
  { signIn, row, personUuid }: { signIn: SignInRow; row: ConnectionRow; personUuid: PersonUuid },
): Promise<boolean> {
  if (signIn.personUuid !== personUuid) return false
  return (await listMemberships(db, personUuid)).some(({ workspace }) => workspace.id === row.workspaceId)
}

async function revokeMismatch(tx: Tx, { stateHash, connectionId }: SignInRow, world: World): Promise<void> {
  const [mine, row] = [await findSignIn(tx, stateHash), await findConnectionById(tx, connectionId)]
  if (mine === null || row === null || statusAt(row, world.now()) !== 'pending') return
  await withdraw({ tx, world }, { row, event: 'mismatch', reason: 'Somebody else came back from the provider.' })
}

/** A client that has worked is used again. */
async function storeClient(
  tx: Tx,
  { workspaceId, attempt: { issuer, redirectUri, mcp } }: { workspaceId: WorkspaceUuid; attempt: SignInAttempt },
  { world, vault }: FinishDependencies,
): Promise<void> {
  const source = mcp?.clientSource
  if (mcp === undefined || (source !== 'person' && source !== 'registration')) return
  const { clientId, clientSecret, clientAuth = null, secretExpiresAt } = mcp
  const id = world.id('ocl_')
  const sealed = clientSecret === undefined ? null : sealClientSecret(vault, id, clientSecret)
  await putConnectionClient(tx, {
    id,
    workspaceId,
    issuer,
    redirectUri,
    source,
    clientId,
    clientAuth,
    secretExpiresAt,
    clientSecret: sealed,
    createdAt: world.now(),
  })
}

async function exchange(
  { root, world, vault, services, outbound }: FinishDependencies,
  { signIn, row, search }: { signIn: SignInRow; row: ConnectionRow; search: string },
) {
  const failed = (message: string) => ({ kind: 'failed', message }) as const
  const service = await findService({ db: root, services }, row)
  const attempt = openAttempt(vault, row.id, signIn.attempt)
  const { mcp } = attempt
  const provider = mcp === undefined ? service && providerOf(service) : providerOfAttempt(attempt, mcp)
  if (service === null || provider === null || provider.issuer !== attempt.issuer)
    return failed('The provider of this service was changed.')
  try {
    const tokens = await exchangeCode(provider, { attempt, search, outbound })
    const held = {
      kind: 'oauth' as const,
      issuer: provider.issuer,
      tokenUrl: provider.tokenUrl,
      clientId: provider.clientId,
      accessToken: tokens.accessToken,
      refreshToken: tokens.refreshToken,
      ...timesOf(tokens, world.now()),
      ...(mcp !== undefined && { mcp: withoutClient(mcp) }),
    }
    // RFC 6749, section 5.1: without a word about them, all that were asked for.
    return { provider, held, attempt, scopes: tokens.scopes ?? mcp?.scopes ?? service.scopes ?? [] }
  } catch (error) {
    if (error instanceof ProviderRefusal || error instanceof ProviderTrouble) return failed(error.message)
    throw error
  }
}

/** The secret of the client is kept with the client alone. */
function withoutClient({
  serverUrl,
  authorizeUrl,
  revokeUrl,
  clientSource,
  clientAuth,
  resource,
}: NonNullable<SignInAttempt['mcp']>) {
  return { serverUrl, authorizeUrl, revokeUrl, clientSource, clientAuth, resource }
}
