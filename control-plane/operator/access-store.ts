import type { PersonUuid, WorkspaceUuid } from '../../shared/lib/ids.ts'
import { z } from 'zod'
import { nullableTime, text, time } from '../db/columns.ts'
import { deviceRef, deviceUuid, workspaceUuid } from '../db/id-columns.ts'
import type { Db } from '../db/open.ts'
import { inKeptWorkspace } from '../db/removed.ts'
import { roles } from '../resources/members/store.ts'

// Everything that gives somebody access, over all workspaces, for the operator.

export interface AccessFilter {
  personUuid?: PersonUuid
  id?: string
  /** The time (ms UTC) after which the access was used, or made; left out: any. */
  usedSince?: number
}

const sessionRow = z.object({ id: text, email: text, createdAt: time, lastUsedAt: nullableTime, expiresAt: time })
export type OpenSessionRow = z.infer<typeof sessionRow>

/** Sessions that are neither revoked nor over, newest first. */
export async function listOpenSessions(
  db: Db,
  { personUuid, id, usedSince = 0 }: AccessFilter,
  now: number,
): Promise<OpenSessionRow[]> {
  const rows: unknown[] = await db('dashboard_sessions as s')
    .join('users as u', 'u.id', 's.user_id')
    .where({ ...(personUuid !== undefined && { 's.user_id': personUuid }), ...(id !== undefined && { 's.id': id }) })
    .whereNull('s.revoked_at')
    .where('s.expires_at', '>', now)
    .whereRaw('coalesce(s.last_used_at, s.created_at) > ?', [usedSince])
    .orderBy('s.created_at', 'desc')
    .select('s.id', 'u.email', {
      createdAt: 's.created_at',
      lastUsedAt: 's.last_used_at',
      expiresAt: 's.expires_at',
    })
  return rows.map((row) => sessionRow.parse(row))
}

/** Returns the number of sessions that were open. */
export async function revokeSessions(db: Db, { personUuid, id }: AccessFilter, now: number): Promise<number> {
  return db('dashboard_sessions')
    .where({ ...(personUuid !== undefined && { user_id: personUuid }), ...(id !== undefined && { id }) })
    .whereNull('revoked_at')
    .where('expires_at', '>', now)
    .update({ revoked_at: now })
}

const tokenRow = sessionRow.extend({ name: text, workspaceId: workspaceUuid, expiresAt: nullableTime })
export type ValidTokenRow = z.infer<typeof tokenRow>

/** Login tokens that still work, newest first. */
export async function listValidTokens(
  db: Db,
  { personUuid, usedSince = 0 }: AccessFilter,
  now: number,
): Promise<ValidTokenRow[]> {
  const rows: unknown[] = await db('login_tokens as t')
    .join('users as u', 'u.id', 't.user_id')
    .where({ ...(personUuid !== undefined && { 't.user_id': personUuid }) })
    .whereNull('t.revoked_at')
    .whereRaw(inKeptWorkspace('t'))
    .where((open) => void open.whereNull('t.expires_at').orWhere('t.expires_at', '>', now))
    .whereRaw('coalesce(t.last_used_at, t.created_at) > ?', [usedSince])
    .orderBy('t.created_at', 'desc')
    .select('t.id', 'u.email', 't.name', {
      workspaceId: 't.workspace_id',
      createdAt: 't.created_at',
      lastUsedAt: 't.last_used_at',
      expiresAt: 't.expires_at',
    })
  return rows.map((row) => tokenRow.parse(row))
}

/** Returns the number of tokens that still worked. */
export async function revokeTokensOf(db: Db, personUuid: PersonUuid, now: number): Promise<number> {
  return db('login_tokens')
    .where({ user_id: personUuid })
    .whereNull('revoked_at')
    .where((open) => void open.whereNull('expires_at').orWhere('expires_at', '>', now))
    .update({ revoked_at: now })
}

/** Removes one-time links and codes of svc that the person could still sign in with. */
export async function removeSignInsOf(db: Db, personUuid: PersonUuid): Promise<void> {
  await db('sign_in_links').where({ user_id: personUuid }).delete()
  await db('device_grants').where({ user_id: personUuid }).delete()
}

const deviceRow = z.object({
  deviceUuid,
  publicId: deviceRef,
  name: text,
  email: text,
  workspaceId: workspaceUuid,
})
export type KnownDeviceRow = z.infer<typeof deviceRow>

/** Devices that were not removed, by name. */
export async function listKnownDevices(db: Db, { personUuid }: AccessFilter): Promise<KnownDeviceRow[]> {
  const rows: unknown[] = await db('devices as d')
    .join('users as u', 'u.id', 'd.user_id')
    .where({ ...(personUuid !== undefined && { 'd.user_id': personUuid }) })
    .whereNull('d.removed_at')
    .whereRaw(inKeptWorkspace('d'))
    .orderBy(['d.display_name', 'd.device_id'])
    .select('u.email', {
      deviceUuid: 'd.device_id',
      publicId: 'd.public_id',
      name: 'd.display_name',
      workspaceId: 'd.workspace_id',
    })
  return rows.map((row) => deviceRow.parse(row))
}

const ownerRow = z.object({ id: workspaceUuid, slug: text })

/** Workspaces of which the person is the only owner. */
export async function listSolelyOwned(db: Db, personUuid: PersonUuid): Promise<{ id: WorkspaceUuid; slug: string }[]> {
  const [owner] = roles
  const rows: unknown[] = await db('members as m')
    .join('workspaces as w', 'w.id', 'm.workspace_id')
    .where({ 'm.user_id': personUuid, 'm.role': owner })
    .whereNull('w.removed_at')
    .whereNotExists(
      db('members as o').whereRaw('o.workspace_id = m.workspace_id and o.role = ? and o.user_id <> ?', [
        owner,
        personUuid,
      ]),
    )
    .orderBy('w.slug')
    .select('w.id', 'w.slug')
  return rows.map((row) => ownerRow.parse(row))
}

export async function removeMemberships(db: Db, personUuid: PersonUuid): Promise<number> {
  return db('members').where({ user_id: personUuid }).delete()
}
