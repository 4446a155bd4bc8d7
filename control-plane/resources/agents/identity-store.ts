import type { AgentRef } from '../../../shared/lib/ids.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'
import { agents } from './store.ts'

/** The fields of agents that are read most often: their names, and who sees them. */
const { id, handle, name, visibility, ownerUuid, reportingToUuid, transferredAt } = agents.columns
const identities = table(
  'agents',
  { id, handle, name, visibility, ownerUuid, reportingToUuid, transferredAt },
  { columns: agents.named },
)
export type AgentIdentity = RowOf<typeof identities>
const identityById = identities.query('where id = ?')
const identitiesByIds = identities.query('where id in ?')

export async function findAgentIdentity(db: Db, id: AgentRef): Promise<AgentIdentity | null> {
  return identityById.first(db, [id])
}

export async function listAgentIdentities(db: Db, ids: readonly AgentRef[]): Promise<AgentIdentity[]> {
  return ids.length === 0 ? [] : identitiesByIds.list(db, [ids])
}
