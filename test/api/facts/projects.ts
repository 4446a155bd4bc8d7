import { on, patch, plain, post, thing } from './kit/recipe.ts'
import { transferRecipes } from './kit/transfer.ts'
import { anAgent } from './kit/agents.ts'
import type { Recipe, ResourceFacts } from './kit/resource-facts.ts'

const aProject: Recipe = async (stage) => ({ params: { projectId: await stage.project() } })
const unknownAgent = 'agt_0000000000000000'

export const projectFacts: ResourceFacts = {
  requests: {
    'projects.list': plain,
    'projects.create': () => ({ body: { name: 'Site' } }),
    'projects.get': aProject,
    'projects.update': async (stage) => ({ ...(await aProject(stage)), body: { description: 'The site' } }),
    'projects.delete': aProject,
    'projects.restore': async (stage) => ({ params: { projectId: await stage.deletedProject() } }),
    'projects.config.get': aProject,
    'projects.config.update': async (stage) => ({ ...(await aProject(stage)), body: { status: 'completed' } }),
    'projects.transferOwner': async (stage) => ({
      ...(await aProject(stage)),
      body: { newOwnerId: stage.member.userId },
    }),
    'agents.projects': anAgent,
  },
  codes: [
    on('projects.create', '422 prefix_reserved', async (stage) => {
      const { issuePrefix } = await stage.server.ok('/workspaces')
      return stage.server.call('/projects', post({ name: 'P', prefix: issuePrefix }))
    }),
    on('projects.create', '409 duplicate_prefix', async (stage) => {
      await stage.server.call('/projects', post({ name: 'P', prefix: 'TWIN' }))
      return stage.server.call('/projects', post({ name: 'P', prefix: 'TWIN' }))
    }),
    on('projects.create', '404 agent_not_found', ({ server }) =>
      server.call('/projects', post({ name: 'P', leadAgentId: unknownAgent })),
    ),
    on('projects.config.update', '404 agent_not_found', async (stage) =>
      stage.server.call(`/projects/${await stage.project()}/config`, patch({ leadAgentId: unknownAgent })),
    ),
    on('projects.list', '403 list_deleted_forbidden', ({ server, live }) =>
      server.call('/projects?status=deleted', { token: live.token }),
    ),
    on('projects.restore', '403 restore_forbidden', async (stage) =>
      stage.server.call(`/projects/${await stage.deletedProject()}/restore`, post({}, stage.member.token)),
    ),
    on('projects.restore', '409 not_deleted', async (stage) =>
      stage.server.call(`/projects/${await stage.project()}/restore`, post()),
    ),
    ...transferRecipes('projects.transferOwner', async (stage) => `/projects/${await stage.project()}`),
  ],

  unknownIds: { projectId: '00000000-0000-4000-8000-00000000000b' },
  things: async ({ server, person }) => ({
    projectId: (await server.ok('/projects', { token: person.token, body: { name: 'Project' } })).id,
  }),
  places: [
    ['projects.list', 'GET', (_, ids) => ({ path: `/projects?lead=${ids['agentId']}` })],
    ['projects.create', 'POST', (_, ids) => ({ path: '/projects', body: { name: 'P', leadAgentId: ids['agentId'] } })],
    [
      'projects.config.update',
      'PATCH',
      async (stage, ids) => ({
        path: `/projects/${await stage.project()}/config`,
        body: { leadAgentId: ids['agentId'] },
      }),
    ],
    [
      'projects.transferOwner',
      'POST',
      async (stage, ids) => ({
        path: `/projects/${await stage.project()}/transfer-owner`,
        body: { newOwnerId: ids['userId'] },
      }),
    ],
  ],
  named: { leadAgentId: thing('agentId') },
  hostile: { leadAgentId: thing('agentId') },
}
