import type { PersonUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { nullableTime, text, time } from '../../db/columns.ts'
import { personUuid, workspaceUuid } from '../../db/id-columns.ts'
import { lockRows } from '../../db/dialect.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'
import { grantStates } from './rules.ts'

// Grants of the device flow. Both codes are stored only as hashes.

const grants = table(
  'device_grants',
  {
    id: text,
    deviceCodeHash: text,
    userCodeHash: text,
    clientName: text,
    address: text,
    status: z.enum(grantStates),
    personUuid: personUuid.nullable(),
    workspaceId: workspaceUuid.nullable(),
    intervalMs: time,
    lastPolledAt: nullableTime,
    createdAt: time,
    expiresAt: time,
  },
  { columns: { personUuid: 'user_id' } },
)
export type GrantRow = RowOf<typeof grants>

export type NewGrant = Pick<
  GrantRow,
  'id' | 'deviceCodeHash' | 'userCodeHash' | 'clientName' | 'address' | 'intervalMs' | 'createdAt' | 'expiresAt'
>

/** Throws the database's unique violation when the user code is taken. */
export async function insertDeviceGrant(db: Db, grant: NewGrant): Promise<void> {
  await grants.insert(db, { ...grant, status: 'pending' })
}

/** Locks the grant until the transaction ends: of two polls at once the second sees the effect of the first. */
export async function findGrantToPoll(db: Db, deviceCodeHash: string): Promise<GrantRow | null> {
  return grants.first(lockRows(grants.from(db).where({ device_code_hash: deviceCodeHash })))
}

export async function findGrantByUserCode(db: Db, userCodeHash: string): Promise<GrantRow | null> {
  return grants.find(db, { userCodeHash })
}

export async function findDeviceGrant(db: Db, id: string): Promise<GrantRow | null> {
  return grants.find(db, { id })
}

export async function replaceGrantPoll(db: Db, id: string, poll: { at: number; intervalMs: number }): Promise<void> {
  await db('device_grants').where({ id }).update({ last_polled_at: poll.at, interval_ms: poll.intervalMs })
}

/** Records a person's decision. Returns false when it was decided before, or has expired. */
export async function claimGrantDecision(
  db: Db,
  id: string,
  decision: { status: 'approved' | 'denied'; personUuid: PersonUuid; workspaceId: string | null; at: number },
): Promise<boolean> {
  const { status, personUuid, workspaceId, at } = decision
  const changed = await db('device_grants')
    .where({ id, status: 'pending' })
    .where('expires_at', '>', at)
    .update({ status, user_id: personUuid, workspace_id: workspaceId })
  return changed === 1
}

/** Returns true once, for the caller that gets the token. */
export async function claimGrantRedemption(db: Db, id: string): Promise<boolean> {
  return (await db('device_grants').where({ id, status: 'approved' }).update({ status: 'redeemed' })) === 1
}

/** Counts one more entered code and returns the count in the window, including this one. */
export async function claimGuess(
  db: Db,
  guess: { personUuid: PersonUuid; at: number; windowMs: number },
): Promise<number> {
  const { personUuid, at, windowMs } = guess
  const isOver = 'code_guesses.since <= ?'
  await db('code_guesses')
    .insert({ user_id: personUuid, count: 1, since: at })
    .onConflict('user_id')
    .merge({
      count: db.raw(`case when ${isOver} then 1 else code_guesses.count + 1 end`, [at - windowMs]),
      since: db.raw(`case when ${isOver} then ? else code_guesses.since end`, [at - windowMs, at]),
    })
  const row: unknown = await db('code_guesses').where({ user_id: personUuid }).first('count')
  return z.object({ count: time }).parse(row).count
}

/** Removes grants and counts that no longer matter. */
export async function removeOldGrants(db: Db, before: number): Promise<void> {
  await db('device_grants').where('expires_at', '<', before).delete()
  await db('code_guesses').where('since', '<', before).delete()
}
