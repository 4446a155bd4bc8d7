import { anAgent, anAgentWith, lateChange, undoneEachTime } from './kit/agents.ts'
import { on, post } from './kit/recipe.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'
import { transferRecipes } from './kit/transfer.ts'

export const agentLifecycleFacts: ResourceFacts = {
  requests: {
    'agents.delete': anAgent,
    'agents.restore': async (stage) => ({ params: { agentId: await stage.deletedAgent() } }),
    'agents.clone': anAgentWith({ name: 'Copy' }),
    'agents.transferOwner': async (stage) => ({
      ...(await anAgent(stage)),
      body: { newOwnerId: stage.member.userId },
    }),
    'agents.accept': anAgent,
  },
  codes: [
    on('agents.restore', '403 restore_forbidden', async (stage) =>
      stage.server.call(`/agents/${await stage.deletedAgent()}/restore`, post({}, stage.member.token)),
    ),
    on('agents.restore', '409 not_deleted', async (stage) =>
      stage.server.call(`/agents/${await stage.agent()}/restore`, post()),
    ),
    ...transferRecipes('agents.transferOwner', async (stage) => `/agents/${await stage.agent()}`),
    lateChange('agents.delete', ({ other }) => ({ path: `/agents/${other}`, method: 'DELETE', body: {} })),
    lateChange('agents.clone', ({ other }) => ({
      path: `/agents/${other}/clones`,
      method: 'POST',
      body: { name: 'Late' },
    })),
  ],
  postgresCodes: [
    on('agents.clone', '409 handle_taken', async (stage) => {
      const agentId = await stage.agent()
      const send = (name: string) => stage.server.call(`/agents/${agentId}/clones`, post({ name }))
      return undoneEachTime(stage, { code: '23505', send })
    }),
  ],
  places: [
    [
      'agents.transferOwner',
      'POST',
      async (stage, ids) => ({
        path: `/agents/${await stage.agent()}/transfer-owner`,
        body: { newOwnerId: ids['userId'] },
      }),
    ],
  ],
  sharp: ['agents.transferOwner', 'agents.accept'],
}
