import type { ConnectionId, PersonUuid, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { z } from 'zod'
import {
  authKinds,
  connectionStatuses,
  type ConnectionSort,
  type ConnectionStatus,
} from '../../../shared/api/connection-fields.ts'
import { int, json, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import { connectionId, personUuid, workspaceUuid } from '../../db/id-columns.ts'
import { byCharacters } from '../../db/dialect.ts'
import { onlyContaining } from '../../db/list-filters.ts'
import type { Db } from '../../db/open.ts'
import { countOf } from '../../db/reads.ts'
import { table, type RowOf } from '../../db/table.ts'
import { sortOrders } from './order.ts'

// Connections; their credentials are sealed (`credential.ts`).

const names = json(z.array(z.string()))

const connections = table(
  'connections',
  {
    /** `conn_...` */
    id: connectionId,
    workspaceId: workspaceUuid,
    serviceId: text,
    /** The label and the kind as the catalog had them: a service may leave the catalog. */
    serviceLabel: text,
    authKind: z.enum(authKinds),
    /** UUID; null: the workspace has it. */
    ownerUuid: personUuid.nullable(),
    accountLabel: text,
    /** The labels of service and account in small letters. */
    sortLabel: text,
    /** The status as it was written; `statusAt` says what it is by now. */
    status: z.enum(connectionStatuses),
    statusReason: nullableText,
    grantedScopes: names,
    fieldNames: names,
    credential: z
      .instanceof(Uint8Array)
      .nullable()
      .transform((bytes): Buffer | null => bytes && Buffer.from(bytes)),
    /** A number that grows by 1 with each credential. */
    credentialVersion: int,
    /** The end of the access token; null: none is known. */
    expiresAt: nullableTime,
    /**
     * The time at which it becomes `expired` unless something happens before: a sign-in that is open, a token that cannot be renewed. null:
     * it does not lapse.
     */
    lapsesAt: nullableTime,
    /** The renewer of the token on any replica, and the time until which others leave it to them; null: nobody renews it. */
    renewedBy: nullableText,
    renewedUntil: nullableTime,
    /** 0: never. */
    lastUsedAt: time,
    createdByUuid: personUuid,
    /** UUID of who signed in last; null: nobody is known. */
    connectedByUuid: personUuid.nullable(),
    version: int,
    createdAt: time,
    updatedAt: time,
  },
  {
    columns: {
      ownerUuid: 'owner_user_id',
      createdByUuid: 'created_by_user_id',
      connectedByUuid: 'connected_by_user_id',
    },
  },
)
export type ConnectionRow = RowOf<typeof connections>

/** Throws the database's unique violation when there is one to the same service with the same owner and label. */
export async function insertConnection(db: Db, connection: ConnectionRow): Promise<void> {
  await connections.insert(db, connection)
}

/** Fails with `transient_conflict` when somebody else changed it since it was read. */
export async function replaceConnection(db: Db, before: ConnectionRow, after: ConnectionRow): Promise<void> {
  await connections.replace(db, before, after)
}

export async function findConnection(
  db: Db,
  workspaceId: WorkspaceUuid,
  id: ConnectionId,
): Promise<ConnectionRow | null> {
  return connections.find(db, { workspaceId, id })
}

/** Finds a connection in whichever workspace it is, for who has the state of its sign-in. */
export async function findConnectionById(db: Db, id: ConnectionId): Promise<ConnectionRow | null> {
  return connections.find(db, { id })
}

/** The one to a service with this owner and label. */
export async function findSameConnection(
  db: Db,
  of: Pick<ConnectionRow, 'workspaceId' | 'serviceId' | 'ownerUuid' | 'accountLabel'>,
): Promise<ConnectionRow | null> {
  const { workspaceId, serviceId, ownerUuid, accountLabel } = of
  return connections.find(db, { workspaceId, serviceId, ownerUuid, accountLabel })
}

const ofService = connections.query('where workspace_id = ? and service_id = ? order by id limit 200')
/** Lists the connections to one service, of whomever they are. */
export const listConnectionsOfService = (
  db: Db,
  workspaceId: WorkspaceUuid,
  serviceId: string,
): Promise<ConnectionRow[]> => ofService.list(db, [workspaceId, serviceId])

/** Removes a connection without a sign-in. */
export async function removeConnection(db: Db, id: ConnectionId): Promise<void> {
  await db('connections').where({ id }).delete()
}

/** Removes a person's own connections, which have no sign-ins any more. */
export async function removeConnectionsOfUser(db: Db, { workspaceId, personUuid }: OwnConnections): Promise<void> {
  const inWorkspace = workspaceId !== undefined && { workspace_id: workspaceId }
  await db('connections')
    .where({ ...inWorkspace, owner_user_id: personUuid })
    .delete()
}
/** The connections that a person has. */
export interface OwnConnections {
  /** Left out: all workspaces. */
  workspaceId?: WorkspaceUuid
  /** UUID. */
  personUuid: PersonUuid
}

export async function recordConnectionUse(db: Db, id: ConnectionId, at: number): Promise<void> {
  await connections.update(db, { id }, { lastUsedAt: at })
}

/** Takes a turn at renewing the token of a connection that nobody else renews. Returns whether it was taken. */
export async function claimRenewal(db: Db, { id, credentialVersion, by, now, until }: RenewalClaim): Promise<boolean> {
  const taken: number = await db('connections')
    .where({ id, credential_version: credentialVersion, status: 'active' })
    .where((free) => void free.whereNull('renewed_by').orWhere('renewed_until', '<=', now))
    .update({ renewed_by: by, renewed_until: until })
  return taken === 1
}
interface RenewalClaim {
  id: ConnectionId
  credentialVersion: number
  by: string
  now: number
  until: number
}

/** Gives the turn back, unless somebody else has taken it since. */
export async function releaseRenewal(db: Db, id: ConnectionId, by: string): Promise<void> {
  await connections.update(db, { id, renewedBy: by }, { renewedBy: null, renewedUntil: null })
}

/**
 * Stores a renewed credential in place of the one that was renewed. Returns whether that one was still there, in an active
 * connection; without that nothing is written. Whoever renews it in the meantime has their own answer of the provider.
 */
export async function storeRenewed(
  db: Db,
  { id, credentialVersion }: Pick<ConnectionRow, 'id' | 'credentialVersion'>,
  renewed: Pick<ConnectionRow, 'credential' | 'expiresAt' | 'lapsesAt' | 'grantedScopes'>,
): Promise<boolean> {
  const { credential, expiresAt, lapsesAt, grantedScopes } = renewed
  const changes = {
    credential,
    expiresAt,
    lapsesAt,
    grantedScopes,
    credentialVersion: credentialVersion + 1,
    renewedBy: null,
    renewedUntil: null,
  }
  return (await connections.update(db, { id, credentialVersion, status: 'active' }, changes)) === 1
}

const lapsing = connections.query('where lapses_at <= ? order by lapses_at, id limit ?')
/** Lists connections whose time is over, longest ago first. */
export const listLapsedConnections = (
  db: Db,
  { before, limit }: { before: number; limit: number },
): Promise<ConnectionRow[]> => lapsing.list(db, [before, limit])

export interface ConnectionFilter {
  workspaceId: WorkspaceUuid
  /** UUID of who sees their own beside those of the workspace; null: those of the workspace alone. Left out: all. */
  visibleTo?: PersonUuid | null
  serviceId?: string
  status?: ConnectionStatus
  q?: string
  /** The time by which lapsed connections are told. */
  now: number
}

function filtered(db: Db, { workspaceId, visibleTo, serviceId, status, q, now }: ConnectionFilter): Knex.QueryBuilder {
  const query = db('connections').where({ workspace_id: workspaceId, ...(serviceId && { service_id: serviceId }) })
  if (visibleTo !== undefined)
    void query.where((seen) => {
      void seen.whereNull('owner_user_id')
      if (visibleTo !== null) void seen.orWhere({ owner_user_id: visibleTo })
    })
  if (status === 'expired') void query.where((is) => void is.where({ status }).orWhere('lapses_at', '<=', now))
  else if (status !== undefined)
    void query.where({ status }).where((lives) => void lives.whereNull('lapses_at').orWhere('lapses_at', '>', now))
  onlyContaining(query, ['service_label', 'account_label', 'service_id'], q)
  return query
}

/** Lists connections behind a place, one more than `limit`. */
export async function listConnections(
  db: Db,
  filter: ConnectionFilter & { sort: ConnectionSort; limit: number; after?: readonly [string | number, string] },
): Promise<ConnectionRow[]> {
  const { by, direction } = sortOrders[filter.sort]
  const key = by === 'sort_label' ? byCharacters(db, by) : by
  const query = filtered(db, filter).select(connections.fields())
  if (filter.after !== undefined)
    void query.whereRaw(`(${key}, id) ${direction === 'asc' ? '>' : '<'} (?, ?)`, [...filter.after])
  return connections.list(query.orderByRaw(`${key} ${direction}, id ${direction}`).limit(filter.limit + 1))
}

/** More are given to no run. */
const mostOfRun = 500
/** Lists the active connections of a workspace and of a person, by label. */
export async function listActiveConnections(
  db: Db,
  of: { workspaceId: WorkspaceUuid; visibleTo: PersonUuid | null; now: number },
): Promise<ConnectionRow[]> {
  const rows = await listConnections(db, { ...of, status: 'active', sort: 'label_asc', limit: mostOfRun })
  return rows.slice(0, mostOfRun)
}

export async function countConnections(db: Db, filter: ConnectionFilter): Promise<number> {
  return countOf(filtered(db, filter))
}
