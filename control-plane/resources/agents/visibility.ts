import type { Knex } from 'knex'

/** The viewer for whom a list of approvals or questions is made. */
export interface GateViewer {
  userId: string | null
  /** `usr_...` */
  userPublicId?: string | null
  agentId: string | null
}

/** Keeps the agents that this viewer sees: those open to the company, their own, and itself. */
export function onlyVisibleAgents(
  agents: Knex.QueryBuilder,
  viewer: { userId: string | null; agentId: string | null },
): void {
  void agents.where({ visibility: 'company' })
  if (viewer.userId !== null) void agents.orWhere({ owner_user_id: viewer.userId })
  if (viewer.agentId !== null) void agents.orWhere({ id: viewer.agentId })
}

/** Selects the agent of a row of `table` if it is private and this viewer is neither its owner nor the agent itself. */
export function hiddenAgents(
  query: Knex.QueryBuilder,
  { viewer, table }: { viewer: GateViewer; table: 'approvals' | 'questions' | 'runs' | 'learnings' },
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
