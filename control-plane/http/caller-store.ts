import { z } from 'zod'
import { roles } from '../../shared/api/route.ts'
import type { Db } from '../db/open.ts'
import type { CallerSource } from './caller-source.ts'

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
  uuid: z.string().nullable(),
  workspace_id: z.string(),
  token_generation: z.number().nullable(),
  deleted_at: z.number().nullable(),
  fence: z.number(),
  ended_at: z.number().nullable(),
})
export type LoginRow = z.infer<typeof loginRow>
export type SessionRow = z.infer<typeof sessionRow>
export type RunRow = z.infer<typeof runRow>

function parse<T extends z.ZodType>(row: unknown, schema: T): z.infer<T> | null {
  return row === undefined ? null : schema.parse(row)
}

// Single values are read by subqueries: on SQLite this costs a quarter of what the same joins cost (5 against 22 µs), and
// every request pays it.
const loginSql = `
  select t.id, t.user_id, t.workspace_id, t.revoked_at, t.expires_at, t.last_used_at,
         (select u.public_id from users u where u.id = t.user_id) as public_id,
         (select u.name from users u where u.id = t.user_id) as name,
         (select u.email from users u where u.id = t.user_id) as email,
         (select m.role from members m where m.workspace_id = t.workspace_id and m.user_id = t.user_id) as role
  from login_tokens t
  where t.token_hash = ?`

export async function findLogin(source: CallerSource, tokenHash: string): Promise<LoginRow | null> {
  return parse(await source.first(loginSql, [tokenHash]), loginRow)
}

const sessionColumns = `s.revoked_at, s.expires_at, u.id as user_id, u.public_id, u.name, u.email, m.workspace_id, m.role
  from dashboard_sessions s
  join users u on u.id = s.user_id
  left join members m on m.user_id = s.user_id`
const sessionSql = `select ${sessionColumns} where s.token_hash = ?
  order by case when m.workspace_id = s.workspace_id then 0 else 1 end, m.created_at, m.workspace_id limit 1`
const sessionInSql = `select ${sessionColumns} and m.workspace_id = ? where s.token_hash = ?`

/** With `workspaceId` the membership there (nulls when there is none), else the session's own one, else the first joined. */
export async function findSession(
  source: CallerSource,
  key: { tokenHash: string; workspaceId: string | null },
): Promise<SessionRow | null> {
  const row: unknown =
    key.workspaceId === null
      ? await source.first(sessionSql, [key.tokenHash])
      : await source.first(sessionInSql, [key.workspaceId, key.tokenHash])
  return parse(row, sessionRow)
}

const runSql = `
  select r.fence, r.ended_at, r.workspace_id,
         (select a.uuid from agents a where a.id = r.agent_id) as uuid,
         (select a.token_generation from agents a where a.id = r.agent_id) as token_generation,
         (select a.deleted_at from agents a where a.id = r.agent_id) as deleted_at
  from runs r
  where r.id = ? and r.agent_id = ?`

/** `uuid` and what is the agent's beside it are null when the agent is gone. */
export async function findRunOfToken(source: CallerSource, runId: string, agentId: string): Promise<RunRow | null> {
  return parse(await source.first(runSql, [runId, agentId]), runRow)
}

export async function markLoginUsed(db: Db, tokenId: string, at: number): Promise<void> {
  await db('login_tokens').where({ id: tokenId }).update({ last_used_at: at })
}
