import { z } from 'zod'
import { nullableTime, text, time } from '../db/columns.ts'
import { personUuid, workspaceUuid } from '../db/id-columns.ts'
import type { Db } from '../db/open.ts'
import { table, type RowOf } from '../db/table.ts'

// Dashboard sessions and one-time sign-in links. Cookies and links are stored only as hashes.

const sessions = table(
  'dashboard_sessions',
  {
    id: text,
    personUuid,
    workspaceId: workspaceUuid.nullable(),
    tokenHash: text,
    createdAt: time,
    lastUsedAt: nullableTime,
    expiresAt: time,
  },
  { columns: { personUuid: 'user_id' } },
)
const person = z.object({ name: text, email: text })
export type SessionRow = RowOf<typeof sessions> & z.infer<typeof person>

export async function insertSession(db: Db, session: Omit<RowOf<typeof sessions>, 'lastUsedAt'>): Promise<void> {
  await sessions.insert(db, session)
}

/** Finds a session that is neither revoked nor expired, nor unused for too long. */
export async function findOpenSession(
  db: Db,
  tokenHash: string,
  { now, usedSince }: { now: number; usedSince: number },
): Promise<SessionRow | null> {
  const row: unknown = await db('dashboard_sessions as s')
    .join('users as u', 'u.id', 's.user_id')
    .where('s.token_hash', tokenHash)
    .whereNull('s.revoked_at')
    .where('s.expires_at', '>', now)
    .whereRaw('coalesce(s.last_used_at, s.created_at) > ?', [usedSince])
    .first(sessions.fields('s'), 'u.name', 'u.email')
  return row === undefined ? null : { ...sessions.read(row), ...person.parse(row) }
}

export async function revokeSession(db: Db, tokenHash: string, at: number): Promise<boolean> {
  const changed = await db('dashboard_sessions')
    .where({ token_hash: tokenHash })
    .whereNull('revoked_at')
    .update({ revoked_at: at })
  return changed === 1
}

const links = table(
  'sign_in_links',
  {
    id: text,
    tokenHash: text,
    personUuid,
    workspaceId: workspaceUuid.nullable(),
    createdAt: time,
    expiresAt: time,
  },
  { columns: { personUuid: 'user_id' } },
)
export type LinkRow = RowOf<typeof links>

export async function insertLink(db: Db, link: LinkRow): Promise<void> {
  await links.insert(db, link)
}

/** Finds a link that can still be used. */
export async function findOpenLink(db: Db, tokenHash: string, now: number): Promise<LinkRow | null> {
  return links.first(links.from(db).where({ token_hash: tokenHash }).whereNull('used_at').where('expires_at', '>', now))
}

/** Returns true once, and only before the link expires. */
export async function claimLink(db: Db, id: string, now: number): Promise<boolean> {
  const changed = await db('sign_in_links')
    .where({ id })
    .whereNull('used_at')
    .where('expires_at', '>', now)
    .update({ used_at: now })
  return changed === 1
}

export async function removeOldSignIns(db: Db, before: number): Promise<void> {
  await db('sign_in_links').where('expires_at', '<', before).delete()
  await db('dashboard_sessions').where('expires_at', '<', before).delete()
}
