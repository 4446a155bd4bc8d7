import { post } from './kit/recipe.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

export const projectGrantFacts: ResourceFacts = {
  requests: {
    'projects.grants.list': async (stage) => ({ params: { projectId: await stage.project() } }),
    'projects.grants.add': async (stage) => ({
      params: { projectId: await stage.project() },
      body: { agentId: await stage.agent() },
    }),
    'projects.grants.remove': async (stage) => {
      const [projectId, agentId] = [await stage.project(), await stage.agent()]
      await stage.server.ok(`/projects/${projectId}/grants`, post({ agentId }))
      return { params: { projectId, agentId } }
    },
  },
}
