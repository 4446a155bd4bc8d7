import { z } from 'zod'
import { nullableTime, text, time } from '../../../db/columns.ts'
import { workspaceUuid } from '../../../db/id-columns.ts'
import type { Db } from '../../../db/open.ts'
import { table, type RowOf } from '../../../db/table.ts'

// This server's clients at issuers where people sign in to MCP servers, each bound to its issuer and workspace. A client is stored when a
// first sign-in with it has succeeded, so that one which does not work is not used again.

const clients = table('connection_clients', {
  id: text,
  workspaceId: workspaceUuid,
  issuer: text,
  clientId: text,
  source: z.enum(['person', 'registration']),
  /** Sealed; null: a public client. */
  clientSecret: z
    .instanceof(Uint8Array)
    .nullable()
    .transform((bytes): Buffer | null => bytes && Buffer.from(bytes)),
  clientAuth: z.enum(['basic', 'post']).nullable(),
  /** The address to which the issuer sends browsers back, as it was registered. */
  redirectUri: text,
  /** null: never. */
  secretExpiresAt: nullableTime,
  createdAt: time,
})
export type ConnectionClientRow = RowOf<typeof clients>

/** Puts it in place of the one with the same id at the issuer. */
export async function putConnectionClient(db: Db, client: ConnectionClientRow): Promise<void> {
  const { workspaceId: workspace_id, issuer, clientId: client_id } = client
  await db('connection_clients').where({ workspace_id, issuer, client_id }).delete()
  await clients.insert(db, client)
}

export async function findConnectionClient(
  db: Db,
  { workspaceId, issuer, clientId }: Pick<ConnectionClientRow, 'workspaceId' | 'issuer' | 'clientId'>,
): Promise<ConnectionClientRow | null> {
  return clients.find(db, { workspaceId, issuer, clientId })
}

const newest = clients.query(
  `where workspace_id = ? and issuer = ? and source = ? and redirect_uri = ?
   and (secret_expires_at is null or secret_expires_at > ?) order by created_at desc, id desc limit 1`,
)

/** The newest one for further sign-ins. */
export async function findNewestConnectionClient(
  db: Db,
  of: Pick<ConnectionClientRow, 'workspaceId' | 'issuer' | 'source' | 'redirectUri'> & { now: number },
): Promise<ConnectionClientRow | null> {
  const [found] = await newest.list(db, [of.workspaceId, of.issuer, of.source, of.redirectUri, of.now])
  return found ?? null
}
