import type { AgentRef } from '../../../../shared/lib/ids.ts'
import { z } from 'zod'
import { historyKinds, type HistoryKind } from '../../../../shared/api/agent-history.ts'
import { json, nullableText, text, time } from '../../../db/columns.ts'
import { actorRef, agentRef } from '../../../db/id-columns.ts'
import { newestFirst, type OlderPage } from '../../../db/id-page.ts'
import type { Db } from '../../../db/open.ts'
import { table, type RowOf } from '../../../db/table.ts'

/**
 * The changes of an agent, in words; entries are never changed. Entries of all kinds but `sessions` are revisions with the same
 * id.
 */
const history = table(
  'agent_history',
  {
    id: text,
    agentRef,
    kind: z.enum(historyKinds),
    changedKeys: json(z.array(z.string())),
    description: text,
    /** Public id of the person (`usr_`) or agent (`agt_`). */
    changedByRef: actorRef.nullable(),
    /** The entry that this one undid. */
    reverts: nullableText,
    createdAt: time,
  },
  { columns: { agentRef: 'agent_id', changedByRef: 'changed_by' } },
)
export type HistoryRow = RowOf<typeof history>

export async function insertHistory(db: Db, entry: HistoryRow): Promise<void> {
  await history.insert(db, entry)
}

export async function findHistory(db: Db, id: string): Promise<HistoryRow | null> {
  return history.find(db, { id })
}

/** Lists entries newest first; returns one row more than `limit`. */
export async function listHistory(
  db: Db,
  filter: OlderPage & { agentRef: AgentRef; kinds?: readonly HistoryKind[] },
): Promise<HistoryRow[]> {
  const query = history.from(db).where({ agent_id: filter.agentRef })
  if (filter.kinds) void query.whereIn('kind', [...filter.kinds])
  return history.list(newestFirst(query, filter))
}
