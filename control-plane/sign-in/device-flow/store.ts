import { z } from 'zod'
import { nullableText, nullableTime, text, time } from '../../db/columns.ts'
import { lockRows } from '../../db/dialect.ts'
import type { Db } from '../../db/open.ts'
import { grantStates } from './rules.ts'

/** Grants of the device flow. Both codes are kept as hashes only. */

const grantRow = z
  .object({
    id: text,
    client_name: text,
    address: text,
    status: z.enum(grantStates),
    user_id: nullableText,
    workspace_id: nullableText,
    interval_ms: time,
    last_polled_at: nullableTime,
    created_at: time,
    expires_at: time,
  })
  .transform((r) => ({
    id: r.id,
    clientName: r.client_name,
    address: r.address,
    status: r.status,
    userId: r.user_id,
    workspaceId: r.workspace_id,
    intervalMs: r.interval_ms,
    lastPolledAt: r.last_polled_at,
    createdAt: r.created_at,
    expiresAt: r.expires_at,
  }))
export type GrantRow = z.infer<typeof grantRow>

export interface NewGrant {
  id: string
  deviceCodeHash: string
  userCodeHash: string
  clientName: string
  address: string
  intervalMs: number
  createdAt: number
  expiresAt: number
}

/** Throws the database's unique violation when the user code is taken. */
export async function insertDeviceGrant(db: Db, grant: NewGrant): Promise<void> {
  await db('device_grants').insert({
    id: grant.id,
    device_code_hash: grant.deviceCodeHash,
    user_code_hash: grant.userCodeHash,
    client_name: grant.clientName,
    address: grant.address,
    status: 'pending',
    interval_ms: grant.intervalMs,
    created_at: grant.createdAt,
    expires_at: grant.expiresAt,
  })
}

/** Locked until the transaction ends: of two polls at once the second sees what the first did. */
export async function findGrantToPoll(db: Db, deviceCodeHash: string): Promise<GrantRow | null> {
  return parse(await lockRows(db('device_grants').where({ device_code_hash: deviceCodeHash })).first())
}

export async function findGrantByUserCode(db: Db, userCodeHash: string): Promise<GrantRow | null> {
  return parse(await db('device_grants').where({ user_code_hash: userCodeHash }).first())
}

export async function findDeviceGrant(db: Db, id: string): Promise<GrantRow | null> {
  return parse(await db('device_grants').where({ id }).first())
}

export async function replaceGrantPoll(db: Db, id: string, poll: { at: number; intervalMs: number }): Promise<void> {
  await db('device_grants').where({ id }).update({ last_polled_at: poll.at, interval_ms: poll.intervalMs })
}

/** A person's decision. False when it was decided before, or is over. */
export async function claimGrantDecision(
  db: Db,
  id: string,
  decision: { status: 'approved' | 'denied'; userId: string; workspaceId: string | null; at: number },
): Promise<boolean> {
  const { status, userId, workspaceId, at } = decision
  const changed = await db('device_grants')
    .where({ id, status: 'pending' })
    .where('expires_at', '>', at)
    .update({ status, user_id: userId, workspace_id: workspaceId })
  return changed === 1
}

/** True once: for whoever gets the token. */
export async function claimGrantRedemption(db: Db, id: string): Promise<boolean> {
  return (await db('device_grants').where({ id, status: 'approved' }).update({ status: 'redeemed' })) === 1
}

/** Counts one more entered code and gives the count of the window, this one included. */
export async function claimGuess(db: Db, guess: { userId: string; at: number; windowMs: number }): Promise<number> {
  const { userId, at, windowMs } = guess
  const isOver = 'code_guesses.since <= ?'
  await db('code_guesses')
    .insert({ user_id: userId, count: 1, since: at })
    .onConflict('user_id')
    .merge({
      count: db.raw(`case when ${isOver} then 1 else code_guesses.count + 1 end`, [at - windowMs]),
      since: db.raw(`case when ${isOver} then ? else code_guesses.since end`, [at - windowMs, at]),
    })
  const row: unknown = await db('code_guesses').where({ user_id: userId }).first('count')
  return z.object({ count: time }).parse(row).count
}

/** Grants and counts that no longer matter to anybody. */
export async function removeOldGrants(db: Db, before: number): Promise<void> {
  await db('device_grants').where('expires_at', '<', before).delete()
  await db('code_guesses').where('since', '<', before).delete()
}

function parse(row: unknown): GrantRow | null {
  return row === undefined ? null : grantRow.parse(row)
}
