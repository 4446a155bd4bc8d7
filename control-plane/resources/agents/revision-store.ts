import { z } from 'zod'
import { json, nullableText, text, time, toJson } from '../../db/columns.ts'
import { newestFirst } from '../../db/id-page.ts'
import type { Db } from '../../db/open.ts'

/** Revisions of agents' settings: one per config write, never changed. */
const row = z
  .object({
    id: text,
    agent_id: text,
    before_config: json(z.record(z.string(), z.unknown())),
    after_config: json(z.record(z.string(), z.unknown())),
    changed_keys: json(z.array(z.string())),
    change_description: nullableText,
    source: z.enum(['patch', 'rollback']),
    changed_by: nullableText,
    created_at: time,
  })
  .transform((r) => ({
    id: r.id,
    agentId: r.agent_id,
    beforeConfig: r.before_config,
    afterConfig: r.after_config,
    changedKeys: r.changed_keys,
    changeDescription: r.change_description ?? '',
    source: r.source,
    /** Public id of the person (`usr_`) or agent (`agt_`) that wrote it. */
    changedBy: r.changed_by,
    createdAt: r.created_at,
  }))
export type RevisionRow = z.infer<typeof row>

export async function insertRevision(db: Db, revision: RevisionRow): Promise<void> {
  await db('agent_revisions').insert({
    id: revision.id,
    agent_id: revision.agentId,
    before_config: toJson(revision.beforeConfig),
    after_config: toJson(revision.afterConfig),
    changed_keys: toJson(revision.changedKeys),
    change_description: revision.changeDescription,
    source: revision.source,
    changed_by: revision.changedBy,
    created_at: revision.createdAt,
  })
}

export async function findRevision(db: Db, agentId: string, id: string): Promise<RevisionRow | null> {
  const found: unknown = await db('agent_revisions').where({ agent_id: agentId, id }).first()
  return found === undefined ? null : row.parse(found)
}

/** Newest first; one row more than `limit`. */
export async function listRevisions(
  db: Db,
  filter: { agentId: string; before?: { createdAt: number; id: string }; limit: number },
): Promise<RevisionRow[]> {
  const query = db('agent_revisions').where({ agent_id: filter.agentId })
  const rows: unknown[] = await newestFirst(query, filter)
  return rows.map((value) => row.parse(value))
}
