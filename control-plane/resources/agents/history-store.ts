import { z } from 'zod'
import { historyKinds, type HistoryKind } from '../../../shared/api/agent-history.ts'
import { json, nullableText, text, time, toJson } from '../../db/columns.ts'
import { newestFirst } from '../../db/id-page.ts'
import type { Db } from '../../db/open.ts'

/** What was changed about an agent, in words; never changed itself. Entries of kind `config` are revisions with the same id. */
const row = z
  .object({
    id: text,
    agent_id: text,
    kind: z.enum(historyKinds),
    changed_keys: json(z.array(z.string())),
    description: text,
    changed_by: nullableText,
    reverts: nullableText,
    created_at: time,
  })
  .transform((r) => ({
    id: r.id,
    agentId: r.agent_id,
    kind: r.kind,
    changedKeys: r.changed_keys,
    description: r.description,
    /** Public id of the person (`usr_`) or agent (`agt_`). */
    changedBy: r.changed_by,
    /** The entry that this one undid. */
    reverts: r.reverts,
    createdAt: r.created_at,
  }))
export type HistoryRow = z.infer<typeof row>

export async function insertHistory(db: Db, entry: HistoryRow): Promise<void> {
  await db('agent_history').insert({
    id: entry.id,
    agent_id: entry.agentId,
    kind: entry.kind,
    changed_keys: toJson(entry.changedKeys),
    description: entry.description,
    changed_by: entry.changedBy,
    reverts: entry.reverts,
    created_at: entry.createdAt,
  })
}

export async function findHistory(db: Db, id: string): Promise<HistoryRow | null> {
  const found: unknown = await db('agent_history').where({ id }).first()
  return found === undefined ? null : row.parse(found)
}

/** Newest first; one row more than `limit`. */
export async function listHistory(
  db: Db,
  filter: {
    agentId: string
    kinds?: readonly HistoryKind[]
    before?: { createdAt: number; id: string }
    limit: number
  },
): Promise<HistoryRow[]> {
  const query = db('agent_history').where({ agent_id: filter.agentId })
  if (filter.kinds) void query.whereIn('kind', [...filter.kinds])
  const rows: unknown[] = await newestFirst(query, filter)
  return rows.map((value) => row.parse(value))
}
