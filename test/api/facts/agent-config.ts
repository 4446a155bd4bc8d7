import { anAgent, anAgentWith, lateChange } from './kit/agents.ts'
import { on, put } from './kit/recipe.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

export const agentConfigFacts: ResourceFacts = {
  requests: {
    'agents.config.get': anAgent,
    'agents.config.put': anAgentWith({ config: { runtime: { maxTurns: 7 } } }),
    'agents.identity.get': anAgent,
    'agents.identity.putAgentMd': anAgentWith({ agentMd: '# Be brief' }),
  },
  codes: [
    on('agents.config.put', '422 folder_requires_device_environment', async (stage) => {
      const agentId = await stage.agent({ defaultFolderId: await stage.folder() })
      return stage.server.call(`/agents/${agentId}/config`, put({ config: { runtime: { environment: 'cloud' } } }))
    }),
    ...['config', 'identity/agent-md'].map((path) =>
      on(path === 'config' ? 'agents.config.put' : 'agents.identity.putAgentMd', '409 agent_md_stale', async (stage) =>
        stage.server.call(`/agents/me/${path}`, put({ agentMd: 'Mine' }, (await stage.caller()).token)),
      ),
    ),
    lateChange('agents.config.put', ({ self }) => ({
      path: `/agents/${self}/config`,
      method: 'PUT',
      body: { config: { runtime: { triggers: { wakeOnHook: false } } } },
    })),
  ],
  withoutCommand: {
    'agents.identity.putAgentMd': 'AGENT.md is written with `agent config set --agent-md-file`',
  },
  sharp: ['agents.config.put'],
}
