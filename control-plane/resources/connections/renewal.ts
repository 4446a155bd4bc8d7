import type { Knex } from 'knex'
import type { World } from '../../../shared/lib/world.ts'
import type { ServiceCatalog } from '../../catalog/services.ts'
import { inTransaction } from '../../db/transaction.ts'
import type { Outbound } from '../../outbound/outbound.ts'
import type { Log } from '../../process/log.ts'
import type { Vault } from '../../vault/vault.ts'
import { openCredential, sealCredential, type OauthCredential } from './own/credential.ts'
import { nextStatus } from './machine.ts'
import {
  ProviderRefusal,
  ProviderTrouble,
  renewTokens,
  withdrawTokens,
  type Provider,
  type Tokens,
} from './own/oauth.ts'
import {
  claimRenewal,
  findConnection,
  releaseRenewal,
  replaceConnection,
  storeRenewed,
  type ConnectionRow,
} from './store.ts'

/**
 * Renewal of access tokens. A refresh token works once with most providers, and some revoke the whole sign-in when one comes twice. So
 * of all replicas one renews at a time: it claims the row, asks the provider, stores what it got before anybody uses it, and gives the
 * row back with the same write.
 *
 *   free ── claim ──> claimed ── stored ──> free, with the next credential
 *                        │ ├──── refused ──> expired; the credential stays
 *                        │ └──── out of reach ──> free, with the same credential
 *                        └─ killed: claimed until `renewedUntil`, then anybody may claim it
 *
 * What a kill leaves open is whether the provider took the refresh token. The next one sends it again: a provider that never saw it
 * takes it, one that did refuses, and the connection is expired with a sentence that says why. Whoever was so slow that the claim ran
 * out stores only in place of the credential that it renewed. A server that is told to end stores what it has asked for, and asks for
 * nothing more.
 */
export interface RenewalDependencies {
  root: Knex
  world: World
  log: Log
  vault: Vault
  services: ServiceCatalog
  outbound: Pick<Outbound, 'fetch'>
  renewals: Renewals
}

/** The renewals that a replica is at, whoever waits for them. */
export class Renewals {
  private readonly work = new Set<Promise<unknown>>()
  private isStopped = false

  /** Does the work, which `stop` waits for. null: it is not begun any more. */
  async run<T>(work: () => Promise<T>): Promise<T | null> {
    if (this.isStopped) return null
    const done = work()
    this.work.add(done)
    try {
      return await done
    } finally {
      this.work.delete(done)
    }
  }

  /** Resolves when all is stored that a provider gave. */
  async stop(): Promise<void> {
    this.isStopped = true
    await Promise.allSettled(this.work)
  }
}

/** Longer than the outbound client waits for a provider. */
const claimMs = 30_000
const storeAgainMs = 250

export type Renewal =
  /** The row has another credential, or is active no more: read it again. */
  | { kind: 'changed' }
  /** Somebody else renews it now. */
  | { kind: 'taken' }
  | { kind: 'unreachable'; message: string }

/** Takes a turn at the tokens of a connection: nobody else renews them until it is given back, or half a minute is over. */
export async function claimTokens(
  { root, world }: Pick<RenewalDependencies, 'root' | 'world'>,
  { id, credentialVersion }: ConnectionRow,
): Promise<string | null> {
  const [by, now] = [world.id('rnw_'), world.now()]
  const claim = { id, credentialVersion, by, now, until: now + claimMs }
  return (await inTransaction(root, (tx) => claimRenewal(tx, claim))) ? by : null
}

interface Renewed {
  held: OauthCredential & { refreshToken: string }
  provider: Provider
}

/** Renews the token of a connection that was read as `row`, at the provider that gave it, unless somebody else does. */
export async function renew(deps: RenewalDependencies, row: ConnectionRow, renewed: Renewed): Promise<Renewal> {
  const renewal = await deps.renewals.run(() => renewOnce(deps, row, renewed))
  return renewal ?? { kind: 'unreachable', message: 'This server is being stopped.' }
}

async function renewOnce(deps: RenewalDependencies, row: ConnectionRow, { held, provider }: Renewed): Promise<Renewal> {
  const { root, log, outbound } = deps
  const by = await claimTokens(deps, row)
  if (by === null) return { kind: 'taken' }
  let tokens: Tokens
  try {
    tokens = await renewTokens(provider, held.refreshToken, outbound)
  } catch (error) {
    if (error instanceof ProviderRefusal) return expire(deps, row, { by, message: error.message })
    await inTransaction(root, (tx) => releaseRenewal(tx, row.id, by))
    if (!(error instanceof ProviderTrouble)) throw error
    const { message } = error
    log.warn({ connectionId: row.id, service: row.serviceId, reason: message }, 'a token could not be renewed')
    return { kind: 'unreachable', message }
  }
  await store(deps, row, { held, tokens, provider })
  return { kind: 'changed' }
}

/** The only copy of what the provider gave: a database that is away for a moment must not lose it. */
async function store(
  { root, world, vault, log, outbound }: RenewalDependencies,
  row: ConnectionRow,
  { held, tokens, provider }: { held: OauthCredential; tokens: Tokens; provider: Provider },
): Promise<void> {
  const next = { ...held, ...timesOf(tokens, world.now()), accessToken: tokens.accessToken }
  // RFC 6749, section 6: without a new one, the one before goes on.
  if (tokens.refreshToken !== null) next.refreshToken = tokens.refreshToken
  const renewed = {
    credential: sealCredential(vault, row.id, next),
    expiresAt: next.expiresAt,
    lapsesAt: null,
    grantedScopes: tokens.scopes ?? row.grantedScopes,
  }
  const until = world.monotonic() + claimMs
  for (;;) {
    try {
      const isStored = await inTransaction(root, (tx) => storeRenewed(tx, row, renewed))
      const told = { connectionId: row.id, service: row.serviceId }
      if (isStored) return log.info(told, 'a token was renewed')
      log.warn(told, 'a renewed token was dropped: the connection was changed meanwhile')
      const now = await findConnection(root, row.workspaceId, row.id)
      // Somebody else may have tokens of the same sign-in.
      if (now !== null && now.credential !== null) return
      return await withdrawTokens(provider, next, outbound).catch((trouble: unknown) =>
        log.warn({ ...told, reason: (trouble as Error).message }, 'tokens that nobody needs could not be withdrawn'),
      )
    } catch (error) {
      if (world.monotonic() >= until) throw error
      await world.sleep(storeAgainMs)
    }
  }
}

/** Returns when the tokens were got and when the access token ends, in ms UTC; `expiresAt` null: the provider does not say. */
export const timesOf = ({ lifetimeMs }: Tokens, now: number) => ({
  obtainedAt: now,
  expiresAt: lifetimeMs === null ? null : now + lifetimeMs,
})

async function expire(
  { root, world, log }: RenewalDependencies,
  seen: ConnectionRow,
  { by, message }: { by: string; message: string },
): Promise<Renewal> {
  const why =
    seen.renewedBy === null
      ? 'The provider does not renew the sign-in.'
      : 'The server was stopped while it renewed the token, and the provider takes the old one no more.'
  await inTransaction(root, async (tx) => {
    const row = await findConnection(tx, seen.workspaceId, seen.id)
    // A claim that ran out may have been somebody else's since, who stored what they got.
    if (row === null || row.renewedBy !== by || row.credentialVersion !== seen.credentialVersion) return
    if (nextStatus(row.status, 'lapse') !== 'expired') return
    const ended = { renewedBy: null, renewedUntil: null, lapsesAt: null, updatedAt: world.now() }
    await replaceConnection(tx, row, {
      ...row,
      ...ended,
      status: 'expired',
      statusReason: `${why} ${message} Sign in again.`,
    })
    log.warn({ connectionId: row.id, service: row.serviceId }, 'a connection is expired')
  })
  return { kind: 'changed' }
}

/** The credential of a row that has one. */
export const heldBy = (vault: Pick<Vault, 'open'>, { id, credential }: ConnectionRow) =>
  credential === null ? null : openCredential(vault, id, credential)
