import { idFrom, type PersonUuid, type WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { blankConnection } from '../../control-plane/resources/connections/steps/change.ts'
import {
  putConnectionClient,
  type ConnectionClientRow,
} from '../../control-plane/resources/connections/own/client-store.ts'
import { putSignIn, type SignInRow } from '../../control-plane/resources/connections/sign-in-store.ts'
import { insertConnection, type ConnectionRow } from '../../control-plane/resources/connections/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { at } from './seed.ts'

const service = { id: 'svc', label: 'Service', authKind: 'oauth', surfaces: ['mcp'] } as const

/** An active connection of the workspace. */
export async function seedConnection(
  db: Db,
  workspaceId: WorkspaceUuid,
  changes: Partial<ConnectionRow> = {},
): Promise<ConnectionRow> {
  const id = realWorld.id('conn_')
  const of = { id, workspaceId, accountLabel: id, createdByUuid: idFrom<PersonUuid>(realWorld.uuid()), now: at }
  const blank = blankConnection({ ...service, surfaces: ['mcp'] }, of)
  const row: ConnectionRow = {
    ...blank,
    status: 'active',
    credential: Buffer.from('sealed'),
    credentialVersion: 1,
    ...changes,
  }
  await insertConnection(db, row)
  return row
}

export async function seedSignIn(
  db: Db,
  { id: connectionId }: ConnectionRow,
  changes: Partial<SignInRow> = {},
): Promise<SignInRow> {
  const row: SignInRow = {
    stateHash: realWorld.uuid(),
    connectionId,
    personUuid: realWorld.uuid(),
    attempt: Buffer.from('sealed'),
    claimedAt: null,
    expiresAt: at + 1,
    ...changes,
  }
  await putSignIn(db, row)
  return row
}

/** A client of the workspace at an issuer, which has registered it. */
export async function seedConnectionClient(
  db: Db,
  workspaceId: string,
  changes: Partial<ConnectionClientRow> = {},
): Promise<ConnectionClientRow> {
  const row: ConnectionClientRow = {
    id: realWorld.id('ocl_'),
    workspaceId: idFrom(workspaceId),
    issuer: 'https://id.example.com',
    clientId: realWorld.uuid(),
    source: 'registration',
    clientSecret: Buffer.from('sealed'),
    clientAuth: 'basic',
    redirectUri: 'https://svc.example.com/callback',
    secretExpiresAt: null,
    createdAt: at,
    ...changes,
  }
  await putConnectionClient(db, row)
  return row
}
