import { z } from 'zod'
import { roles } from '../../shared/api/route.ts'
import type { Db } from '../db/open.ts'

/** What the kernel reads to know its caller: one query for each kind of token. */

const person = {
  user_id: z.string(),
  public_id: z.string(),
  name: z.string(),
  email: z.string(),
  workspace_id: z.string().nullable(),
  role: z.enum(roles).nullable(),
  revoked_at: z.number().nullable(),
  expires_at: z.number().nullable(),
}
const loginRow = z.object({ ...person, id: z.string(), last_used_at: z.number().nullable() })
const sessionRow = z.object(person)
const runRow = z.object({
  uuid: z.string(),
  workspace_id: z.string(),
  token_generation: z.number(),
  deleted_at: z.number().nullable(),
  fence: z.number(),
  ended_at: z.number().nullable(),
})
export type LoginRow = z.infer<typeof loginRow>
export type SessionRow = z.infer<typeof sessionRow>
export type RunRow = z.infer<typeof runRow>

/** Rows of a raw query; the two drivers wrap them differently. */
function firstOf<T extends z.ZodType>(result: unknown, schema: T): z.infer<T> | null {
  const rows = Array.isArray(result) ? (result as unknown[]) : (result as { rows: unknown[] }).rows
  return rows[0] === undefined ? null : schema.parse(rows[0])
}

const loginSql = `
  select t.id, t.workspace_id, t.revoked_at, t.expires_at, t.last_used_at,
         u.id as user_id, u.public_id, u.name, u.email, m.role
  from login_tokens t
  join users u on u.id = t.user_id
  left join members m on m.workspace_id = t.workspace_id and m.user_id = t.user_id
  where t.token_hash = ?`

export async function findLogin(db: Db, tokenHash: string): Promise<LoginRow | null> {
  return firstOf(await db.raw(loginSql, [tokenHash]), loginRow)
}

const sessionColumns = `s.revoked_at, s.expires_at, u.id as user_id, u.public_id, u.name, u.email, m.workspace_id, m.role
  from dashboard_sessions s
  join users u on u.id = s.user_id
  left join members m on m.user_id = s.user_id`
const sessionSql = `select ${sessionColumns} where s.token_hash = ? order by m.created_at, m.workspace_id limit 1`
const sessionInSql = `select ${sessionColumns} and m.workspace_id = ? where s.token_hash = ?`

/** With `workspaceId` the membership there (nulls when there is none), else the first one joined. */
export async function findSession(
  db: Db,
  key: { tokenHash: string; workspaceId: string | null },
): Promise<SessionRow | null> {
  const result: unknown =
    key.workspaceId === null
      ? await db.raw(sessionSql, [key.tokenHash])
      : await db.raw(sessionInSql, [key.workspaceId, key.tokenHash])
  return firstOf(result, sessionRow)
}

const runSql = `
  select a.uuid, a.workspace_id, a.token_generation, a.deleted_at, r.fence, r.ended_at
  from runs r join agents a on a.id = r.agent_id
  where r.id = ? and r.agent_id = ?`

export async function findRunOfToken(db: Db, runId: string, agentId: string): Promise<RunRow | null> {
  return firstOf(await db.raw(runSql, [runId, agentId]), runRow)
}

export async function markLoginUsed(db: Db, tokenId: string, at: number): Promise<void> {
  await db('login_tokens').where({ id: tokenId }).update({ last_used_at: at })
}
