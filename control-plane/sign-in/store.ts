import { z } from 'zod'
import { nullableText, nullableTime, text, time } from '../db/columns.ts'
import type { Db } from '../db/open.ts'

/** Dashboard sessions and one-time sign-in links. Cookies and links are kept as hashes only. */

export interface NewSession {
  id: string
  userId: string
  workspaceId: string | null
  tokenHash: string
  at: number
  expiresAt: number
}

export async function insertSession(db: Db, session: NewSession): Promise<void> {
  await db('dashboard_sessions').insert({
    id: session.id,
    user_id: session.userId,
    workspace_id: session.workspaceId,
    token_hash: session.tokenHash,
    created_at: session.at,
    expires_at: session.expiresAt,
  })
}

const sessionRow = z
  .object({
    id: text,
    user_id: text,
    workspace_id: nullableText,
    name: text,
    email: text,
    last_used_at: nullableTime,
    expires_at: time,
  })
  .transform((r) => ({
    id: r.id,
    lastUsedAt: r.last_used_at,
    userId: r.user_id,
    workspaceId: r.workspace_id,
    name: r.name,
    email: r.email,
    expiresAt: r.expires_at,
  }))
export type SessionRow = z.infer<typeof sessionRow>

/** A session that is neither revoked nor over, nor unused for too long. */
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
    .first('s.id', 's.user_id', 's.workspace_id', 's.last_used_at', 's.expires_at', 'u.name', 'u.email')
  return row === undefined ? null : sessionRow.parse(row)
}

export async function revokeSession(db: Db, tokenHash: string, at: number): Promise<boolean> {
  const changed = await db('dashboard_sessions')
    .where({ token_hash: tokenHash })
    .whereNull('revoked_at')
    .update({ revoked_at: at })
  return changed === 1
}

export interface NewLink {
  id: string
  tokenHash: string
  userId: string
  workspaceId: string | null
  at: number
  expiresAt: number
}

export async function insertLink(db: Db, link: NewLink): Promise<void> {
  await db('sign_in_links').insert({
    id: link.id,
    token_hash: link.tokenHash,
    user_id: link.userId,
    workspace_id: link.workspaceId,
    created_at: link.at,
    expires_at: link.expiresAt,
  })
}

const linkRow = z
  .object({ id: text, user_id: text, workspace_id: nullableText })
  .transform((r) => ({ id: r.id, userId: r.user_id, workspaceId: r.workspace_id }))
export type LinkRow = z.infer<typeof linkRow>

/** A link that can still be used. */
export async function findOpenLink(db: Db, tokenHash: string, now: number): Promise<LinkRow | null> {
  const row: unknown = await db('sign_in_links')
    .where({ token_hash: tokenHash })
    .whereNull('used_at')
    .where('expires_at', '>', now)
    .first()
  return row === undefined ? null : linkRow.parse(row)
}

/** True once, and only in time. */
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
