import type { AgentRef, RunId } from '../../shared/lib/ids.ts'
import { agentUuid, personRef, personUuid, workspaceUuid } from '../db/id-columns.ts'
import { z } from 'zod'
import { roles } from '../../shared/api/route.ts'
import type { Db } from '../db/open.ts'
import { inKeptWorkspace } from '../db/removed.ts'
import { command, query } from '../db/statement.ts'

// Reads who calls: one query for each kind of token.

const person = {
  /** The id of the token or session. */
  id: z.string(),
  user_id: personUuid,
  public_id: personRef,
  name: z.string(),
  email: z.string(),
  workspace_id: workspaceUuid.nullable(),
  role: z.enum(roles).nullable(),
  created_at: z.number(),
  last_used_at: z.number().nullable(),
  revoked_at: z.number().nullable(),
  expires_at: z.number().nullable(),
}
const sessionRow = z.object(person)
const runRow = z.object({
  uuid: agentUuid.nullable(),
  workspace_id: workspaceUuid,
  token_generation: z.number().nullable(),
  deleted_at: z.number().nullable(),
  fence: z.number(),
  ended_at: z.number().nullable(),
})
export type CallerSessionRow = z.infer<typeof sessionRow>
export type CallerRunRow = z.infer<typeof runRow>

// Single values are read by subqueries: on SQLite this costs a quarter of what the same joins cost (5 against 22 µs), and
// every request pays it.
const login = query(
  `select t.id, t.user_id, t.workspace_id, t.created_at, t.revoked_at, t.expires_at, t.last_used_at,
         (select u.public_id from users u where u.id = t.user_id) as public_id,
         (select u.name from users u where u.id = t.user_id) as name,
         (select u.email from users u where u.id = t.user_id) as email,
         (select m.role from members m where m.workspace_id = t.workspace_id and m.user_id = t.user_id) as role
  from login_tokens t
  where t.token_hash = ? and ${inKeptWorkspace('t')}`,
  sessionRow,
)

export async function findLogin(db: Db, tokenHash: string): Promise<CallerSessionRow | null> {
  return login.first(db, [tokenHash])
}

const sessionColumns = `s.id, s.created_at, s.last_used_at, s.revoked_at, s.expires_at, u.id as user_id, u.public_id, u.name, u.email, m.workspace_id, m.role
  from dashboard_sessions s
  join users u on u.id = s.user_id
  left join members m on m.user_id = s.user_id and ${inKeptWorkspace('m')}`
const session = query(
  `select ${sessionColumns} where s.token_hash = ?
  order by case when m.workspace_id = s.workspace_id then 0 else 1 end, m.created_at, m.workspace_id limit 1`,
  sessionRow,
)
const sessionIn = query(`select ${sessionColumns} and m.workspace_id = ? where s.token_hash = ?`, sessionRow)

/**
 * Finds the session with the membership in `workspaceId` (nulls when there is none), else in the session's own workspace, else in the one
 * joined first.
 */
export async function findSession(
  db: Db,
  { tokenHash, workspaceId }: { tokenHash: string; workspaceId: string | null },
): Promise<CallerSessionRow | null> {
  return workspaceId === null ? session.first(db, [tokenHash]) : sessionIn.first(db, [workspaceId, tokenHash])
}

const runOfToken = query(
  `select r.fence, r.ended_at, r.workspace_id,
         (select a.uuid from agents a where a.id = r.agent_id) as uuid,
         (select a.token_generation from agents a where a.id = r.agent_id) as token_generation,
         (select a.deleted_at from agents a where a.id = r.agent_id) as deleted_at
  from runs r
  where r.id = ? and r.agent_id = ? and ${inKeptWorkspace('r')}`,
  runRow,
)

/** `uuid` and what is the agent's beside it are null when the agent is gone. */
export async function findRunOfToken(db: Db, runId: RunId, agentRef: AgentRef): Promise<CallerRunRow | null> {
  return runOfToken.first(db, [runId, agentRef])
}

const noteUse = command('update login_tokens set last_used_at = ? where id = ?')

export async function markLoginUsed(db: Db, tokenId: string, at: number): Promise<void> {
  await noteUse(db, [at, tokenId])
}

const noteSessionUse = command('update dashboard_sessions set last_used_at = ? where id = ?')

export async function markSessionUsed(db: Db, sessionId: string, at: number): Promise<void> {
  await noteSessionUse(db, [at, sessionId])
}
