import fc from 'fast-check'
import { halfRequest } from '../../kit/half-request.ts'
import type { Stage } from '../contract/stage.ts'
import { makeServer, newServer } from './kit/mcp-servers.ts'
import { makePlugin, tracker } from './kit/plugins.ts'
import { on, patch, plain, post, thing } from './kit/recipe.ts'
import type { Recipe, ResourceFacts } from './kit/resource-facts.ts'

/** Where the catalog has the service of the connections that are made here. */
const deepwiki = 'https://mcp.deepwiki.com/mcp'
const unknown = 'mcp_0000000000000000'
const aServer: Recipe = async (stage) => ({ params: { mcpServerId: (await makeServer(stage)).id } })

/** One that answers, unless it is asked without its key. */
const withTools = async (stage: Stage, headers: object = { Authorization: 'Bearer key-of-tools' }) =>
  (await makeServer(stage, { url: (await stage.mcpServer()).url, headers })).id
const tools = ({ server }: Pick<Stage, 'server'>, id: string, token?: string) =>
  server.call(`/mcp-servers/${id}/tools`, token === undefined ? {} : { token })
const ofPlugin = async (stage: Stage): Promise<string> =>
  (await makePlugin(stage, { servers: { tracker } })).mcpServers[0].id

/** Asks in the name of an agent whose run ends before the body is there. */
async function afterItsRun(stage: Stage, method: string, { path, body = {} }: { path?: string; body?: unknown } = {}) {
  const { runId, token } = await stage.caller()
  const at = path ?? `/mcp-servers/${(await makeServer(stage)).id}`
  return halfRequest(stage.server, at, { method, body, token, between: () => stage.endRun(runId) })
}

export const mcpServerFacts: ResourceFacts = {
  requests: {
    'mcpServers.list': plain,
    'mcpServers.create': () => ({ body: newServer() }),
    'mcpServers.get': aServer,
    'mcpServers.tools': async (stage) => ({ params: { mcpServerId: await withTools(stage) } }),
    'mcpServers.update': async (stage) => ({ ...(await aServer(stage)), body: { url: 'https://other.example.com' } }),
    'mcpServers.delete': aServer,
  },
  codes: [
    on('mcpServers.get', '404 mcp_server_not_found', ({ server }) => server.call(`/mcp-servers/${unknown}`)),
    on('mcpServers.tools', '404 mcp_server_not_found', (stage) => tools(stage, unknown)),
    on('mcpServers.tools', '409 mcp_server_not_asked', async (stage) => {
      const program = { transport: 'stdio', command: 'x', url: undefined, headers: undefined }
      return tools(stage, (await makeServer(stage, program)).id)
    }),
    on('mcpServers.tools', '403 mcp_values_of_runs', async (stage) =>
      tools(stage, (await makeServer(stage)).id, stage.member.token),
    ),
    on('mcpServers.tools', '409 mcp_sign_in_needed', async (stage) => tools(stage, await withTools(stage, {}))),
    on('mcpServers.tools', '502 mcp_server_unreadable', async (stage) =>
      tools(stage, (await makeServer(stage, { url: 'http://127.0.0.1:1/mcp', headers: {} })).id),
    ),
    on('mcpServers.update', '404 mcp_server_not_found', ({ server }) =>
      server.call(`/mcp-servers/${unknown}`, patch({})),
    ),
    on('mcpServers.delete', '404 mcp_server_not_found', ({ server }) =>
      server.call(`/mcp-servers/${unknown}`, { method: 'DELETE' }),
    ),
    on('mcpServers.create', '404 agent_not_found', ({ server }) =>
      server.call('/mcp-servers', post(newServer({ agentId: 'agt_0000000000000000' }))),
    ),
    on('mcpServers.create', '404 connection_not_found', ({ server }) =>
      server.call('/mcp-servers', post(newServer({ connectionId: 'conn_0000000000000000' }))),
    ),
    on('mcpServers.update', '404 connection_not_found', async (stage) => {
      const { id } = await makeServer(stage)
      return stage.server.call(`/mcp-servers/${id}`, patch({ connectionId: 'conn_0000000000000000' }))
    }),
    on('mcpServers.update', '409 mcp_server_of_plugin', async (stage) =>
      stage.server.call(`/mcp-servers/${await ofPlugin(stage)}`, patch({ url: 'https://other.example.com' })),
    ),
    on('mcpServers.delete', '409 mcp_server_of_plugin', async (stage) =>
      stage.server.call(`/mcp-servers/${await ofPlugin(stage)}`, { method: 'DELETE' }),
    ),
    on('mcpServers.create', '409 duplicate_resource', async (stage) => {
      const { name } = await makeServer(stage)
      return stage.server.call('/mcp-servers', post(newServer({ name: name.toUpperCase() })))
    }),
    on('mcpServers.create', '403 agent_self_only', async (stage) =>
      stage.server.call('/mcp-servers', post(newServer({ agentId: await stage.agent() }), stage.live.token)),
    ),
    on('mcpServers.create', '403 platform_change_requires_run', (stage) =>
      afterItsRun(stage, 'POST', { path: '/mcp-servers', body: newServer() }),
    ),
    on('mcpServers.update', '403 platform_change_requires_run', (stage) => afterItsRun(stage, 'PATCH')),
    on('mcpServers.delete', '403 platform_change_requires_run', (stage) => afterItsRun(stage, 'DELETE')),
  ],

  unknownIds: { mcpServerId: unknown },
  nothingToRead: { 'mcpServers.tools': 'nobody answers at the address of a new one' },
  things: async ({ server, person: { token }, agentId }) => ({
    mcpServerId: (await makeServer({ server }, { token, agentId })).id,
  }),
  places: [
    ['mcpServers.list', 'GET', (_, ids) => ({ path: `/mcp-servers?agentId=${ids['agentId']}` })],
    ['mcpServers.create', 'POST', (_, ids) => ({ path: '/mcp-servers', body: newServer({ agentId: ids['agentId'] }) })],
  ],
  named: {
    transport: fc.constantFrom('http', 'stdio'),
    url: fc.constantFrom('https://mcp.example.com', null),
    connectionId: fc.constantFrom(null),
    trustSkills: fc.boolean(),
    headers: fc.constant({ Authorization: 'Bearer ${TRACKER_TOKEN}' }),
    command: fc.constantFrom('docs-mcp', null),
    args: fc.constant(['--all']),
    env: fc.constant({ TOKEN: '${TRACKER_TOKEN}' }),
  },
  hostile: {
    connectionId: thing('connections.id'),
    url: fc.constantFrom('https://evil.example', deepwiki),
    command: fc.constant(null),
    transport: fc.constant('http'),
  },
  sharp: ['mcpServers.create', 'mcpServers.update', 'mcpServers.delete'],
}
