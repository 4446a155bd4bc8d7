import { anAgent } from './kit/agents.ts'
import { on, post, put } from './kit/recipe.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

export const agentHistoryFacts: ResourceFacts = {
  requests: {
    'agents.revisions.list': anAgent,
    'agents.revisions.get': async (stage) => ({ params: await stage.revised() }),
    'agents.revisions.rollback': async (stage) => ({ params: await stage.revised() }),
    'agents.history.list': anAgent,
    'agents.history.revert': async (stage) => {
      const { agentId, revisionId } = await stage.revised()
      return { params: { agentId, entryId: revisionId } }
    },
  },
  codes: [
    on('agents.history.revert', '403 agent_config_human_only', async (stage) => {
      const { agentId, token } = await stage.caller()
      const config = { runtime: { triggers: { wakeOnHook: false } } }
      const { revision } = await stage.server.ok(`/agents/${agentId}/config`, put({ config }))
      return stage.server.call(`/agents/me/history/${revision.id}/revert`, post(undefined, token))
    }),
    on('agents.history.revert', '422 config_revert_unsupported', async (stage) => {
      const agentId = await stage.agent()
      await stage.server.ok(`/agents/${agentId}/sessions/reset`, { method: 'POST' })
      const [reset] = (await stage.server.ok(`/agents/${agentId}/history`)).data
      return stage.server.call(`/agents/${agentId}/history/${reset.id}/revert`, post())
    }),
  ],
  plainErrors: {
    'plain.revision_matches': async ({ stage }) => {
      const { agentId } = await stage.revised()
      const [newest] = (await stage.server.ok(`/agents/${agentId}/revisions`)).data
      return stage.server.call(`/agents/${agentId}/revisions/${newest.id}/rollback`, { method: 'POST' })
    },
  },

  unknownIds: {
    revisionId: '00000000-0000-4000-8000-00000000000c',
    entryId: '00000000-0000-4000-8000-00000000000d',
  },
  things: async ({ server, person, agentId }) => {
    const change = (maxTurns: number) =>
      server.ok(`/agents/${agentId}/config`, put({ config: { runtime: { maxTurns } } }, person.token))
    const { revision } = await change(5)
    await change(6)
    return { revisionId: revision.id, entryId: revision.id }
  },
  within: [
    [
      'agents.revisions.get',
      'GET',
      async (stage, ids) => ({ path: `/agents/${await stage.agent()}/revisions/${ids['revisionId']}` }),
    ],
    [
      'agents.history.revert',
      'POST',
      async (stage, ids) => ({ path: `/agents/${await stage.agent()}/history/${ids['entryId']}/revert` }),
    ],
  ],
  sharp: ['agents.revisions.rollback', 'agents.history.revert'],
}
