import type { ProjectUuid } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import { projectGrantRoutes } from '../../../../shared/api/project-grants.ts'
import type { Db } from '../../../db/open.ts'
import type { PersonCaller } from '../../../http/callers.ts'
import { implement, type ImplementedRoute } from '../../../http/implement.ts'
import { lookUpAgent } from '../../agents/lookup.ts'
import { handleText } from '../../agents/present.ts'
import { isAgentVisible, viewerOfAgents } from '../../agents/rules.ts'
import { listAgentsByIds } from '../../agents/store.ts'
import { liveProject } from '../lookup.ts'
import { ownsOrAdministersProject } from '../rules.ts'
import { insertGrant, listGrants, removeGrant, type ProjectRow } from '../store.ts'

export function projectGrantHandlers(): ImplementedRoute[] {
  return implement(projectGrantRoutes, {
    async list({ db, caller, params }) {
      return shown(db, caller, await liveProject(db, caller, params.projectId))
    },

    async add({ db, caller, params, body, world }) {
      const project = await ownProject(db, caller, params.projectId)
      const agent = await lookUpAgent(db, caller, body.agentId)
      if (agent === null || agent.deletedAt !== null) return fail('agent_not_found', { param: 'agentId' })
      await insertGrant(db, { projectId: project.id, agentRef: agent.id, createdAt: world.now() })
      return shown(db, caller, project)
    },

    async remove({ db, caller, params }) {
      const project = await ownProject(db, caller, params.projectId)
      // The grant of a deleted agent goes, too, as the agent may be restored.
      const agent = (await lookUpAgent(db, caller, params.agentId)) ?? fail('agent_not_found', { param: 'agentId' })
      await removeGrant(db, project.id, agent.id)
    },
  })
}

/** Returns the project where the caller decides who may see it: its owner and workspace admins do. */
async function ownProject(db: Db, caller: PersonCaller, id: ProjectUuid): Promise<ProjectRow> {
  const project = await liveProject(db, caller, id)
  if (!ownsOrAdministersProject(project, caller))
    fail('http_exception', { message: "Only the project's owner and workspace admins let agents in." })
  return project
}

/** Leaves out agents that the caller does not see. */
async function shown(db: Db, caller: PersonCaller, project: ProjectRow) {
  const granted = await listGrants(db, project.id)
  const agents = await listAgentsByIds(
    db,
    granted.map((grant) => grant.agentRef),
  )
  const byId = new Map(
    agents.filter((agent) => isAgentVisible(agent, viewerOfAgents(caller))).map((agent) => [agent.id, agent]),
  )
  const data = granted.flatMap(({ agentRef, createdAt }) => {
    const agent = byId.get(agentRef)
    if (agent === undefined) return []
    const { id, name } = agent
    const named = { id, handle: handleText(agent), name }
    return [{ object: 'project_grant' as const, agent: named, createdAt: toTimestamp(createdAt) }]
  })
  return { object: 'list' as const, data }
}
