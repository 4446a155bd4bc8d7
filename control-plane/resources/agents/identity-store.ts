import { z } from 'zod'
import { nullableText, nullableTime, text } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { columnsOf, query } from '../../db/statement.ts'

/** What is asked of agents most often: what they are called, and who sees them. */
const identity = z
  .object({
    id: text,
    handle: text,
    name: text,
    visibility: z.enum(['company', 'private']),
    owner_user_id: nullableText,
    reporting_to: nullableText,
    transferred_at: nullableTime,
  })
  .transform((r) => ({
    id: r.id,
    handle: r.handle,
    name: r.name,
    visibility: r.visibility,
    ownerUserId: r.owner_user_id,
    reportingTo: r.reporting_to,
    transferredAt: r.transferred_at,
  }))
export type AgentIdentity = z.infer<typeof identity>
const identityById = query(`select ${columnsOf(identity)} from agents where id = ?`, identity)
const identitiesByIds = query(`select ${columnsOf(identity)} from agents where id in ?`, identity)

export async function findAgentIdentity(db: Db, id: string): Promise<AgentIdentity | null> {
  return identityById.first(db, [id])
}

export async function listAgentIdentities(db: Db, ids: readonly string[]): Promise<AgentIdentity[]> {
  return ids.length === 0 ? [] : identitiesByIds.list(db, [ids])
}
