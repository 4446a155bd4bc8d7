import type { ConnectionId, PersonUuid, WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { connectionLimits } from '../../../../shared/api/connection-fields.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Service } from '../../../catalog/services.ts'
import type { Db, Tx } from '../../../db/open.ts'
import { hashToken } from '../../../http/token-hash.ts'
import { claimSecretsKey } from '../../secrets/add.ts'
import type { Vault } from '../../../vault/vault.ts'
import { fieldNamesOf, sealAttempt, sealCredential, type Credential, type SignInAttempt } from '../own/credential.ts'
import { nextStatus, type ConnectionEvent } from '../machine.ts'
import { statusAt } from '../rules.ts'
import { putSignIn, removeSignIn, removeSignInsOfUser } from '../sign-in-store.ts'
import {
  insertConnection,
  removeConnection,
  removeConnectionsOfUser,
  replaceConnection,
  type ConnectionRow,
  type OwnConnections,
} from '../store.ts'
import { queueWithdrawals } from '../withdrawal-store.ts'

// Writes what becomes of a connection. Each change is one event of the machine.

interface Changing {
  tx: Tx
  world: World
  vault: Pick<Vault, 'seal' | 'fingerprint' | 'otherFingerprint'>
}

/** A row that is not stored yet, of a service that a person connects the workspace to. */
export function blankConnection(
  service: Service,
  of: {
    id: ConnectionId
    workspaceId: WorkspaceUuid
    accountLabel: string
    createdByUuid: PersonUuid
    /** UUID; left out: the workspace has it. */
    ownerUuid?: PersonUuid | null
    now: number
  },
): ConnectionRow {
  const { now, ownerUuid = null, ...given } = of
  return {
    ...given,
    ownerUuid,
    serviceId: service.id,
    serviceLabel: service.label,
    authKind: service.authKind,
    connectedByUuid: of.createdByUuid,
    sortLabel: `${service.label} ${of.accountLabel}`.toLowerCase(),
    status: 'pending',
    statusReason: null,
    grantedScopes: [],
    fieldNames: [],
    credential: null,
    credentialVersion: 0,
    expiresAt: null,
    lapsesAt: null,
    renewedBy: null,
    renewedUntil: null,
    lastUsedAt: 0,
    version: 1,
    createdAt: now,
    updatedAt: now,
  }
}

/** Stores a connection that is new, or what becomes of one that was there. */
async function write(tx: Tx, { before, after }: { before: ConnectionRow | null; after: ConnectionRow }) {
  if (before === null) await insertConnection(tx, after)
  else await replaceConnection(tx, before, after)
  return after
}

/** The state after an event. Throws when the event does not happen in the state; the callers have looked before. */
function after(row: ConnectionRow | null, event: ConnectionEvent, now: number) {
  const status = nextStatus(row === null ? 'none' : statusAt(row, now), event)
  if (status === null) throw new Error(`a connection cannot ${event} as it is`)
  return status
}

const unowned = { renewedBy: null, renewedUntil: null } as const

interface Connecting {
  before: ConnectionRow | null
  blank: ConnectionRow
  /** null: a service without a credential. */
  held: Credential | null
  /** The person who connects the workspace. */
  personUuid: PersonUuid
}

export async function connect(
  { tx, world, vault }: Changing,
  { before, blank, held, personUuid }: Connecting,
): Promise<ConnectionRow> {
  const now = world.now()
  const row = before ?? blank
  const status = after(before, 'connect', now) as 'active'
  if (before !== null) await removeSignIn(tx, row.id)
  const sealed = credentialOf(vault, row, held)
  if (held !== null) await claimSecretsKey(tx, vault, now)
  return write(tx, {
    before,
    after: {
      ...row,
      ...unowned,
      ...sealed,
      connectedByUuid: personUuid,
      status,
      statusReason: null,
      grantedScopes: [],
      expiresAt: null,
      lapsesAt: null,
      updatedAt: now,
    },
  })
}

const credentialOf = (vault: Pick<Vault, 'seal'>, row: ConnectionRow, held: Credential | null) => ({
  credential: held && sealCredential(vault, row.id, held),
  credentialVersion: row.credentialVersion + 1,
  fieldNames: held === null ? [] : fieldNamesOf(held),
})

/** Opens a sign-in; the one before, if there is one, is void. */
export async function begin(
  { tx, world, vault }: Changing,
  { before, blank, attempt, personUuid }: Beginning,
): Promise<ConnectionRow> {
  const now = world.now()
  const row = before ?? blank
  const status = after(before, 'begin', now) as 'pending'
  const expiresAt = now + connectionLimits.signInMs
  const signingIn = { connectedByUuid: personUuid, status, statusReason: null, lapsesAt: expiresAt, updatedAt: now }
  const pending = { ...row, ...unowned, ...signingIn }
  const stored = await write(tx, { before, after: pending })
  const sealed = sealAttempt(vault, row.id, attempt)
  await claimSecretsKey(tx, vault, now)
  const stateHash = hashToken(attempt.state)
  await putSignIn(tx, { stateHash, connectionId: row.id, personUuid, attempt: sealed, claimedAt: null, expiresAt })
  return stored
}
interface Beginning {
  before: ConnectionRow | null
  blank: ConnectionRow
  attempt: SignInAttempt
  /** The person who must come back. */
  personUuid: PersonUuid
}

/** Takes the tokens that the provider gave. */
export async function approve(
  { tx, world, vault }: Changing,
  { row, held, scopes }: { row: ConnectionRow; held: Credential & { kind: 'oauth' }; scopes: string[] },
): Promise<ConnectionRow> {
  const now = world.now()
  const status = after(row, 'approve', now) as 'active'
  await removeSignIn(tx, row.id)
  const { expiresAt, refreshToken } = held
  const active = {
    ...row,
    ...unowned,
    ...credentialOf(vault, row, held),
    status,
    statusReason: null,
    grantedScopes: scopes,
    expiresAt,
    lapsesAt: refreshToken === null ? expiresAt : null,
    updatedAt: now,
  }
  return write(tx, { before: row, after: active })
}

/** Withdraws a connection, or removes one whose sign-in is open. Does nothing to one that is revoked already. */
export async function withdraw(
  { tx, world }: Pick<Changing, 'tx' | 'world'>,
  { row, event, reason }: { row: ConnectionRow; event: 'withdraw' | 'mismatch'; reason: string },
): Promise<void> {
  const now = world.now()
  if (row.status === 'revoked') return
  const status = after(row, event, now)
  await removeSignIn(tx, row.id)
  if (status === 'removed') return removeConnection(tx, row.id)
  const nothing = { credential: null, fieldNames: [], grantedScopes: [], expiresAt: null, lapsesAt: null, ...unowned }
  await replaceConnection(tx, row, { ...row, ...nothing, status, statusReason: reason, updatedAt: now })
}

/** Forgets the own connections of a person who leaves; those of the workspace stay. Their providers are told later. */
export async function forgetConnectionsOf(db: Db, of: OwnConnections, now: number): Promise<void> {
  await removeSignInsOfUser(db, of)
  await queueWithdrawals(db, of, now)
  await removeConnectionsOfUser(db, of)
}
