import fc from 'fast-check'
import { anAgent, anAgentWith, lateChange, undoneEachTime } from './kit/agents.ts'
import { evil, manyIds, nobody, on, patch, plain, post, thing } from './kit/recipe.ts'
import type { CodeRecipe, ResourceFacts } from './kit/resource-facts.ts'

const codes: readonly CodeRecipe[] = [
  on('agents.list', '400 too_many_ids', (stage) => manyIds(stage, '/agents', 'agt_0000000000000000')),
  on('agents.list', '400 ids_exclusive', ({ server }) => server.call('/agents?ids=me&q=x')),
  on('agents.list', '403 list_deleted_forbidden', ({ server, live }) =>
    server.call('/agents?status=deleted', { token: live.token }),
  ),
  on('agents.update', '422 invalid_status_transition', async (stage) =>
    stage.server.call(`/agents/${await stage.agent()}`, patch({ status: 'idle' })),
  ),
  on('agents.update', '400 config_write_forbidden', async (stage) =>
    stage.server.call(`/agents/${await stage.agent()}`, patch({ model: 'gpt-5' })),
  ),
  on('agents.update', '400 identity_write_forbidden', async ({ server, live }) =>
    server.call('/agents/me', patch({ identityMd: 'Mine' }, live.token)),
  ),
  on('agents.update', '400 reporting_cycle', async (stage) => {
    const above = await stage.agent()
    const below = await stage.agent({ reportingTo: above })
    return stage.server.call(`/agents/${above}`, patch({ reportingTo: below }))
  }),
  on('agents.create', '422 folder_requires_device_environment', async (stage) =>
    stage.server.call('/agents', post({ name: 'Cloud', environment: 'cloud', defaultFolderId: await stage.folder() })),
  ),
  on('agents.update', '422 folder_requires_device_environment', async (stage) => {
    const agentId = await stage.agent({ environment: 'cloud' })
    return stage.server.call(`/agents/${agentId}`, patch({ defaultFolderId: await stage.folder() }))
  }),
  on('agents.create', '403 default_folder_forbidden', async (stage) =>
    stage.server.call('/agents', post({ name: 'Mine', defaultFolderId: await stage.folder() }, stage.member.token)),
  ),
  on('agents.update', '403 default_folder_forbidden', async (stage) =>
    stage.server.call(
      `/agents/${await stage.agent()}`,
      patch({ defaultFolderId: await stage.folder() }, stage.member.token),
    ),
  ),
  on('agents.update', '403 default_repo_forbidden', async (stage) =>
    stage.server.call(
      `/agents/${await stage.agent()}`,
      patch({ defaultRepoId: crypto.randomUUID() }, stage.member.token),
    ),
  ),
  on('agents.create', '404 repo_not_found', ({ server }) =>
    server.call('/agents', post({ name: 'Mine', defaultRepoId: crypto.randomUUID() })),
  ),
  on('agents.update', '404 repo_not_found', async (stage) =>
    stage.server.call(`/agents/${await stage.agent()}`, patch({ defaultRepoId: crypto.randomUUID() })),
  ),
  lateChange('agents.create', () => ({ path: '/agents', method: 'POST', body: { name: 'Late' } })),
  lateChange('agents.update', ({ other }) => ({
    path: `/agents/${other}`,
    method: 'PATCH',
    body: { description: 'Late' },
  })),
]

export const agentFacts: ResourceFacts = {
  requests: {
    'agents.list': plain,
    'agents.create': () => ({ body: { name: 'Builder' } }),
    'agents.get': anAgent,
    'agents.update': anAgentWith({ description: 'Builds' }),
  },
  codes,
  postgresCodes: [
    on('agents.create', '409 handle_taken', (stage) =>
      undoneEachTime(stage, { code: '23505', send: (name) => stage.server.call('/agents', post({ name })) }),
    ),
    on('agents.update', '409 handle_taken', async (stage) => {
      const agentId = await stage.agent()
      const send = (name: string) => stage.server.call(`/agents/${agentId}`, patch({ name }))
      return undoneEachTime(stage, { code: '23505', send })
    }),
  ],
  notOnRoute: {
    'reporting_cycle agents.create': 'nobody reports to an agent that is being made',
    'default_repo_forbidden agents.create': 'whoever makes an agent owns it',
  },

  unknownIds: { agentId: 'agt_0000000000000000', newOwnerId: nobody },
  things: async ({ agentId, colleague }) => ({ agentId, newOwnerId: colleague.userId }),
  places: [
    ['agents.list', 'GET', (_, ids) => ({ path: `/agents?ids=${ids['agentId']}` })],
    ['agents.create', 'POST', (_, ids) => ({ path: '/agents', body: { name: 'A', reportingTo: ids['agentId'] } })],
    ['agents.create', 'POST', (_, ids) => ({ path: '/agents', body: { name: 'A', defaultFolderId: ids['shortId'] } })],
    [
      'agents.update',
      'PATCH',
      async (stage, ids) => ({ path: `/agents/${await stage.agent()}`, body: { reportingTo: ids['agentId'] } }),
    ],
    [
      'agents.update',
      'PATCH',
      async (stage, ids) => ({ path: `/agents/${await stage.agent()}`, body: { defaultFolderId: ids['shortId'] } }),
    ],
  ],

  named: {
    reportingTo: thing('agentId'),
    defaultFolderId: thing('shortId'),
    defaultRepoId: thing('repoId'),
    harness: fc.constantFrom('claude', 'codex', 'command'),
    modelId: fc.constantFrom('claude-opus-4-5', 'gpt-5', 'no-such-model'),
  },
  hostile: {
    command: fc.constantFrom<unknown>(evil, ['sh', '-c', evil], null),
    harness: fc.constantFrom('command', 'claude', null),
    protocol: fc.constantFrom('acp', null),
    skillFolders: fc.constantFrom(['/tmp/skills'], ['~/skills', 'skills'], null),
    fallbackHarness: fc.constantFrom('command', 'codex', null),
  },
}
