import type { ConnectionId } from '../../../../shared/lib/ids.ts'
import type { connectionRoutes } from '../../../../shared/api/connections.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { inTransaction } from '../../../db/transaction.ts'
import type { BeforeInput } from '../../../http/implement.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import type { OauthCredential } from '../own/credential.ts'
import { lookUpConnection } from '../lookup.ts'
import { ProviderRefusal, ProviderTrouble, withdrawTokens, type Provider } from '../own/oauth.ts'
import { providerOfHeld } from '../own/provider-of-held.ts'
import { findService } from '../service-of.ts'
import { claimTokens, heldBy } from '../renewal.ts'
import { statusAt } from '../rules.ts'
import { releaseRenewal, type ConnectionRow } from '../store.ts'

type Dependencies = Pick<ResourceDependencies, 'root' | 'vault' | 'services' | 'outbound'>
type Input = BeforeInput<(typeof connectionRoutes)['revoke']>

/** The credential that was withdrawn at its provider, and the claim by which nobody renews it in the meantime. */
export interface Withdrawn {
  connectionId: ConnectionId
  credentialVersion: number
  claim: string
}

const waitMs = 20_000
const lookAgainMs = 100

/**
 * Has the provider withdraw the tokens of an active connection. null: there is nothing that it could withdraw, or it is not asked. Fails
 * with `connection_not_revokable`.
 */
export async function withdrawAtProvider(input: Input, deps: Dependencies): Promise<Withdrawn | null> {
  const { db, caller, params, query, world } = input
  const until = world.monotonic() + waitMs
  for (;;) {
    const row = await lookUpConnection(db, caller, params.id)
    if (query.local || statusAt(row, world.now()) !== 'active') return null
    const asked = await withdrawable(row, deps)
    if (asked === null) return null
    // A token that is renewed meanwhile would outlive the revocation.
    const claim = await claimTokens({ root: deps.root, world }, row)
    if (claim !== null) return ask(input, { row, claim, ...asked }, deps)
    if (world.monotonic() >= until)
      fail('connection_not_revokable', { message: 'The token is being renewed. Nothing was changed; try again.' })
    await world.sleep(lookAgainMs)
  }
}

async function withdrawable(row: ConnectionRow, deps: Dependencies) {
  const service = await findService({ db: deps.root, services: deps.services }, row)
  const held = heldBy(deps.vault, row)
  if (service === null || held?.kind !== 'oauth') return null
  const from = await providerOfHeld(deps, { row, service, held })
  if ('why' in from || from.provider?.revokeUrl === undefined) return null
  return { provider: from.provider, held }
}

async function ask({ log }: Input, { row, claim, provider, held }: Asked, deps: Dependencies): Promise<Withdrawn> {
  const withdrawn = { connectionId: row.id, credentialVersion: row.credentialVersion, claim }
  try {
    await withdrawTokens(provider, held, deps.outbound)
    return withdrawn
  } catch (error) {
    await releaseWithdrawn(withdrawn, deps)
    if (!(error instanceof ProviderRefusal) && !(error instanceof ProviderTrouble)) throw error
    const told = { connectionId: row.id, service: row.serviceId, reason: error.message }
    log.warn(told, 'a provider did not revoke a sign-in')
    return fail('connection_not_revokable', {
      message: `${error.message} Nothing was changed. With \`local=true\` this server forgets the credential all the same.`,
    })
  }
}
interface Asked {
  row: ConnectionRow
  claim: string
  provider: Provider
  held: OauthCredential
}

/** Lets others renew again, unless the connection is revoked by now. Never fails: a claim ends by itself. */
export async function releaseWithdrawn(
  withdrawn: Withdrawn | null,
  { root }: Pick<Dependencies, 'root'>,
): Promise<void> {
  if (withdrawn === null) return
  const { connectionId, claim } = withdrawn
  await inTransaction(root, (tx) => releaseRenewal(tx, connectionId, claim)).catch(() => undefined)
}
