import type { AgentRef, AgentUuid, PersonUuid } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'

export interface GrantedAgent {
  agentRef: AgentRef
  agentUuid: AgentUuid
}

/** The viewer for whom a list is made; null sees all. */
export type ProjectViewer = { personUuid: PersonUuid } | GrantedAgent | null

/**
 * Keeps the projects that this viewer sees: those open to the company, their own, and those that an agent leads or was
 * let into.
 */
export function onlyVisibleProjects(query: Knex.QueryBuilder, viewer: NonNullable<ProjectViewer>): void {
  void query.where((any) => {
    void any.where({ visibility: 'company' })
    if ('personUuid' in viewer) void any.orWhere({ owner_user_id: viewer.personUuid })
    else void any.orWhere((own) => onlyGranted(own, viewer))
  })
}

/** Keeps the projects that an agent leads or was let into. */
export function onlyGranted(any: Knex.QueryBuilder, agent: GrantedAgent): void {
  void any
    .where({ lead_agent_id: agent.agentUuid })
    .orWhereIn(
      'id',
      (grants) => void grants.from('project_grants').select('project_id').where({ agent_id: agent.agentRef }),
    )
}
