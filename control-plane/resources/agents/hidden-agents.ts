import type { Knex } from 'knex'

/** Whose eyes a list of approvals or questions is made for. */
export interface GateViewer {
  userId: string | null
  /** `usr_...` */
  userPublicId?: string | null
  agentId: string | null
}

/** The agent that asks, when it is private and this viewer is neither its owner nor itself. */
export function hiddenAgents(
  query: Knex.QueryBuilder,
  { viewer, table }: { viewer: GateViewer; table: 'approvals' | 'questions' },
): void {
  void query
    .from('agents')
    .select('agents.id')
    .whereRaw(`agents.id = ${table}.agent_id`)
    .where({ visibility: 'private' })
  if (viewer.userId !== null)
    void query.where((other) => void other.whereNull('owner_user_id').orWhereNot({ owner_user_id: viewer.userId }))
  if (viewer.agentId !== null) void query.whereNot('agents.id', viewer.agentId)
}
