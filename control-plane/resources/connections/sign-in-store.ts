import type { ConnectionId } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { nullableTime, text, time } from '../../db/columns.ts'
import { connectionId, personUuid } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'
import type { OwnConnections } from './store.ts'

// Sign-ins at a provider that were begun, of which a connection has one at most.

const signIns = table(
  'connection_sign_ins',
  {
    /** The hash of the state that the provider sends back, which works once. */
    stateHash: text,
    connectionId,
    /** UUID of who began it. */
    personUuid,
    /** Sealed. */
    attempt: z.instanceof(Uint8Array).transform((bytes): Buffer => Buffer.from(bytes)),
    /** The time at which somebody came back with the state, which nobody does again; null: nobody has. */
    claimedAt: nullableTime,
    expiresAt: time,
  },
  { columns: { personUuid: 'user_id' } },
)
export type SignInRow = RowOf<typeof signIns>

/** Puts it in place of the connection's sign-in before, whose state is void then. */
export async function putSignIn(db: Db, signIn: SignInRow): Promise<void> {
  await removeSignIn(db, signIn.connectionId)
  await signIns.insert(db, signIn)
}

export async function findSignIn(db: Db, stateHash: string): Promise<SignInRow | null> {
  return signIns.find(db, { stateHash })
}

/** Returns whether it was claimed now, and by nobody before. */
export async function claimSignIn(db: Db, stateHash: string, at: number): Promise<boolean> {
  return (await signIns.update(db, { stateHash, claimedAt: null }, { claimedAt: at })) === 1
}

export async function removeSignIn(db: Db, connectionId: ConnectionId): Promise<void> {
  await db('connection_sign_ins').where({ connection_id: connectionId }).delete()
}

/** Removes those of a person's own connections. */
export async function removeSignInsOfUser(db: Db, { workspaceId, personUuid }: OwnConnections): Promise<void> {
  const inWorkspace = workspaceId !== undefined && { workspace_id: workspaceId }
  const own = db('connections')
    .where({ ...inWorkspace, owner_user_id: personUuid })
    .select('id')
  await db('connection_sign_ins').whereIn('connection_id', own).delete()
}
