import { personRef } from '../db/id-columns.ts'
import type { PersonUuid, WorkspaceUuid } from '../../shared/lib/ids.ts'
import { z } from 'zod'
import { text } from '../db/columns.ts'
import { newestFirst, type OlderPage } from '../db/id-page.ts'
import type { Db } from '../db/open.ts'
import { loginTokens, type LoginToken } from '../resources/members/store.ts'

// Login tokens as people see them; only their holders know the tokens themselves.

const holder = z.object({ personRef, email: text })
export type LoginTokenRow = LoginToken & z.infer<typeof holder>

export interface LoginTokenFilter extends OlderPage {
  workspaceId: WorkspaceUuid
  /** null: of everybody. */
  personUuid: PersonUuid | null
  now: number
}

/** Lists valid tokens, newest first; returns one more than `limit` when there are more. */
export async function listLoginTokens(db: Db, filter: LoginTokenFilter): Promise<LoginTokenRow[]> {
  const { workspaceId, personUuid, now } = filter
  const query = db('login_tokens as t')
    .join('users as u', 'u.id', 't.user_id')
    .where('t.workspace_id', workspaceId)
    .whereNull('t.revoked_at')
    .where((open) => void open.whereNull('t.expires_at').orWhere('t.expires_at', '>', now))
  if (personUuid !== null) void query.where('t.user_id', personUuid)
  const found = newestFirst(query, filter, 't.')
  const rows: unknown[] = await found.select(loginTokens.fields('t'), 'u.public_id as personRef', 'u.email')
  return rows.map((row) => ({ ...loginTokens.read(row), ...holder.parse(row) }))
}

/** Revokes a token; `personUuid` null: of anybody. Returns false when there is no such valid token in the workspace. */
export async function revokeTokenIn(
  db: Db,
  token: { id: string; personUuid: PersonUuid | null; workspaceId: WorkspaceUuid },
  at: number,
): Promise<boolean> {
  const { id, personUuid, workspaceId } = token
  const changed = await db('login_tokens')
    .where({ id, workspace_id: workspaceId, ...(personUuid !== null && { user_id: personUuid }) })
    .whereNull('revoked_at')
    .where((open) => void open.whereNull('expires_at').orWhere('expires_at', '>', at))
    .update({ revoked_at: at })
  return changed === 1
}
