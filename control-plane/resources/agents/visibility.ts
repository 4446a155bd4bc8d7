import type { ActorRef, PersonUuid } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'

/** Keeps the agents that this viewer sees: those open to the company, their own, and itself. */
export function onlyVisibleAgents(
  agents: Knex.QueryBuilder,
  viewer: { personUuid: PersonUuid | null; agentRef: ActorRef | null },
): void {
  void agents.where({ visibility: 'company' })
  if (viewer.personUuid !== null) void agents.orWhere({ owner_user_id: viewer.personUuid })
  if (viewer.agentRef !== null) void agents.orWhere({ id: viewer.agentRef })
}
