import type { AgentRef } from '../../../../shared/lib/ids.ts'
import { z } from 'zod'
import { json, nullableText, text, time } from '../../../db/columns.ts'
import { actorRef, agentRef } from '../../../db/id-columns.ts'
import { newestFirst, type OlderPage } from '../../../db/id-page.ts'
import type { Db } from '../../../db/open.ts'
import { table, type RowOf } from '../../../db/table.ts'

/** Revisions of agents' settings: one per config write, never changed. */
const revisions = table(
  'agent_revisions',
  {
    id: text,
    agentRef,
    beforeConfig: json(z.record(z.string(), z.unknown())),
    afterConfig: json(z.record(z.string(), z.unknown())),
    changedKeys: json(z.array(z.string())),
    changeDescription: nullableText.transform((value) => value ?? ''),
    source: z.enum(['patch', 'rollback']),
    /** Public id of the person (`usr_`) or agent (`agt_`) that wrote it. */
    changedByRef: actorRef.nullable(),
    createdAt: time,
  },
  { columns: { agentRef: 'agent_id', changedByRef: 'changed_by' } },
)
export type RevisionRow = RowOf<typeof revisions>

export async function insertRevision(db: Db, revision: RevisionRow): Promise<void> {
  await revisions.insert(db, revision)
}

export async function findRevision(db: Db, agentRef: AgentRef, id: string): Promise<RevisionRow | null> {
  return revisions.find(db, { agentRef, id })
}

/** Lists revisions newest first; returns one row more than `limit`. */
export async function listRevisions(db: Db, filter: OlderPage & { agentRef: AgentRef }): Promise<RevisionRow[]> {
  const query = revisions.from(db).where({ agent_id: filter.agentRef })
  return revisions.list(newestFirst(query, filter))
}
