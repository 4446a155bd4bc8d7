import type { Person } from '../../kit/server.ts'
import { on, post } from './kit/recipe.ts'
import type { Recipe, ResourceFacts } from './kit/resource-facts.ts'

const ownWorkspace: Recipe = ({ owner }) => ({ params: { workspaceId: owner.workspaceId } })
const ofStranger = (person: Person) => ({ params: { workspaceId: person.workspaceId }, token: person.token })

export const workspaceActionFacts: ResourceFacts = {
  requests: {
    'workspaces.delete': async (stage) => {
      const person = await stage.stranger()
      const { name } = await stage.server.ok('/workspaces', { token: person.token })
      return { ...ofStranger(person), body: { confirmName: name }, endsCaller: true }
    },
    'workspaces.company.update': async (stage) => ({ ...(await ownWorkspace(stage)), body: { name: 'Acme Inc.' } }),
    'workspaces.pauseAgents': async (stage) => ofStranger(await stage.stranger()),
    'workspaces.resumeAgents': async (stage) => ofStranger(await stage.stranger()),
    'workspaces.archive': async (stage) => ofStranger(await stage.stranger()),
    'workspaces.export': ownWorkspace,
    'workspaces.companyConfig.get': ownWorkspace,
    'workspaces.companyConfig.update': async (stage) => ({ ...(await ownWorkspace(stage)), body: { maxTurns: 200 } }),
  },
  codes: [
    on('workspaces.delete', '403 http_exception', ({ server, owner, admin }) =>
      server.call(`/workspaces/${owner.workspaceId}`, { ...post({ confirmName: 'x' }, admin.token), method: 'DELETE' }),
    ),
  ],
  ends: {
    'workspaces.delete': 'workspace',
    'workspaces.archive': 'workspace',
    'workspaces.pauseAgents': 'workspace',
  },
}
