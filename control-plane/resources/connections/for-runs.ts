import type { ConnectionId, PersonUuid, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Db } from '../../db/open.ts'
import type { Service } from '../../catalog/services.ts'
import { deliveredOf, type Credential, type Delivered } from './own/credential.ts'
import { providerOfHeld } from './own/provider-of-held.ts'
import { findService } from './service-of.ts'
import { heldBy, renew, type RenewalDependencies } from './renewal.ts'
import { renewalAt, statusAt } from './rules.ts'
import { findConnection, listActiveConnections, recordConnectionUse, type ConnectionRow } from './store.ts'

/**
 * The connections of a run: the active ones of its workspace, and those of its agent's owner. What it is given of one is asked for
 * each time it is needed, so that a run that lasts for hours has a token that works.
 */
export interface RunOwner {
  workspaceId: WorkspaceUuid
  /** UUID of the owner of the run's agent. */
  agentOwnerUuid: PersonUuid | null
}

export const listConnectionsForRun = async (db: Db, { workspaceId, agentOwnerUuid }: RunOwner, now: number) =>
  listActiveConnections(db, { workspaceId, visibleTo: agentOwnerUuid, now })

export interface UsedConnection extends Delivered {
  connectionId: ConnectionId
  serviceId: string
  /** The version of the credential: whoever finds it refused asks again with it. */
  credentialVersion: number
  /** The time (ms UTC) from which it is worth asking again; null: it does not end. */
  expiresAt: number | null
}

/** The reason why a run gets nothing of a connection. The message may be shown to people. */
export class ConnectionUnusable extends Error {
  override name = 'ConnectionUnusable'
  readonly reason: 'not_given' | 'not_found' | 'not_active' | 'unreachable'

  constructor(reason: ConnectionUnusable['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

/** A run notes its use so often at most. */
const usedEveryMs = 60_000
/** A token that is so young is not renewed again because somebody says that the service refused it. */
const youngMs = 10_000
const lookAgainMs = 100
/** A provider whose tokens end at once is not asked for ever. */
const mostChanges = 5
/** Longer than a claim lasts that somebody died with. */
const longestWaitMs = 60_000

/**
 * Returns what the run sends to the service, or has in its environment, and renews it when its end is near. `refused`: the version that the
 * service did not take. Fails with ConnectionUnusable.
 */
export async function useConnection(
  deps: RenewalDependencies,
  run: RunOwner,
  { connectionId, refused = null }: { connectionId: ConnectionId; refused?: number | null },
): Promise<UsedConnection> {
  const { root, world, vault, services } = deps
  const until = world.monotonic() + longestWaitMs
  let changes = 0
  for (;;) {
    const row = await findUsable(root, run, { connectionId, now: world.now() })
    const service = await findService({ db: root, services }, row)
    if (service === null) throw new ConnectionUnusable('not_found', 'There is no such service any more.')
    const held = heldBy(vault, row)
    const give = () => delivered(deps, { row, service, held })
    const need = needOf(held, { now: world.now(), isRefused: row.credentialVersion === refused })
    const from = await providerOfHeld(deps, { row, service, held })
    if ('why' in from) throw new ConnectionUnusable('not_active', from.why)
    const { provider } = from
    if (need.kind === 'none' || provider === null) return give()
    const renewal = await renew(deps, row, { held: need.held, provider })
    if (renewal.kind === 'changed') {
      if (++changes <= mostChanges) continue
      throw new ConnectionUnusable('unreachable', 'The provider gives tokens that end at once.')
    }
    // The token still works, so nobody waits.
    if (need.isAlive) return give()
    if (renewal.kind === 'unreachable') throw new ConnectionUnusable('unreachable', renewal.message)
    if (world.monotonic() >= until)
      throw new ConnectionUnusable('unreachable', 'Another server renews the token, and does not come to an end.')
    await world.sleep(lookAgainMs)
  }
}

/** Fails with ConnectionUnusable. */
export async function findUsable(
  db: Db,
  { workspaceId, agentOwnerUuid }: RunOwner,
  { connectionId, now }: { connectionId: ConnectionId; now: number },
): Promise<ConnectionRow> {
  const row = await findConnection(db, workspaceId, connectionId)
  if (row === null || (row.ownerUuid !== null && row.ownerUuid !== agentOwnerUuid))
    throw new ConnectionUnusable('not_found', 'There is no such connection that the agent may use.')
  const status = statusAt(row, now)
  if (status !== 'active')
    throw new ConnectionUnusable('not_active', `The connection to ${row.serviceLabel} is ${status}.`)
  return row
}

type Need =
  | { kind: 'none' }
  | { kind: 'renewal'; held: Extract<Credential, { kind: 'oauth' }> & { refreshToken: string }; isAlive: boolean }

/** Decides whether a credential is to be renewed before it is given (pure). */
function needOf(held: Credential | null, { now, isRefused }: { now: number; isRefused: boolean }): Need {
  if (held === null || held.kind !== 'oauth' || held.refreshToken === null) return { kind: 'none' }
  const { refreshToken, expiresAt, obtainedAt } = held
  const isDue = expiresAt !== null && now >= renewalAt({ obtainedAt, expiresAt })
  const isStale = isRefused && now - obtainedAt >= youngMs
  if (!isDue && !isStale) return { kind: 'none' }
  return {
    kind: 'renewal',
    held: { ...held, refreshToken },
    isAlive: !isStale && (expiresAt === null || now < expiresAt),
  }
}

async function delivered(
  { root, world }: RenewalDependencies,
  { row, service, held }: { row: ConnectionRow; service: Service; held: Credential | null },
): Promise<UsedConnection> {
  const now = world.now()
  if (now - row.lastUsedAt >= usedEveryMs) await recordConnectionUse(root, row.id, now)
  return {
    connectionId: row.id,
    serviceId: row.serviceId,
    credentialVersion: row.credentialVersion,
    expiresAt: row.expiresAt,
    ...(held === null ? { headers: {}, env: {}, values: [] } : deliveredOf(service, held)),
  }
}
