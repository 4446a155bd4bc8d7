import fc from 'fast-check'
import type { Reply } from '../../kit/server.ts'
import type { Stage } from '../contract/stage.ts'
import {
  makeConnection,
  makeOdd,
  makeRevoked,
  makeSignedIn,
  newConnection,
  withClosedServices,
} from './kit/connections.ts'
import { inPool, on, plain, post } from './kit/recipe.ts'
import type { Recipe, ResourceFacts } from './kit/resource-facts.ts'

const unknown = 'conn_0000000000000000'
const aConnection: Recipe = async (stage) => ({ params: { 'connections.id': await makeConnection(stage) } })
const create = ({ server }: Pick<Stage, 'server'>, body: Record<string, unknown>, token?: string): Promise<Reply> =>
  server.call('/connections', post(newConnection(body), token))
const reauthorize = ({ server }: Pick<Stage, 'server'>, id: string, body = {}, token?: string): Promise<Reply> =>
  server.call(`/connections/${id}/reauthorize`, post(body, token))
const tavily = { integrationId: 'tavily', apiKeyFields: { apiKey: 'tvly-abc' } }

export const connectionFacts: ResourceFacts = {
  requests: {
    'connections.catalog': plain,
    'connections.list': plain,
    'connections.create': () => ({ body: newConnection() }),
    'connections.get': aConnection,
    'connections.revoke': aConnection,
    'connections.reauthorize': async (stage) => ({ params: { 'connections.id': await makeRevoked(stage) }, body: {} }),
  },
  codes: [
    on('connections.create', '404 integration_not_found', (stage) => create(stage, { integrationId: 'nothing' })),
    on('connections.create', '403 connection_owner_mismatch', (stage) =>
      create(stage, { integrationId: 'stripe' }, stage.member.token),
    ),
    on('connections.create', '400 api_key_invalid', (stage) =>
      create(stage, { ...tavily, apiKeyFields: { apiKey: 'x' } }),
    ),
    on('connections.create', '400 oauth_exchange_failed', (stage) => create(stage, { integrationId: 'gitlab' })),
    on('connections.create', '400 unsupported_auth_kind', async (stage) =>
      create(
        { server: await withClosedServices(stage) },
        { integrationId: 'closed-key', apiKeyFields: { apiKey: 'x' } },
      ),
    ),
    on('connections.get', '404 connection_not_found', ({ server }) => server.call(`/connections/${unknown}`)),
    on('connections.revoke', '404 connection_not_found', ({ server }) =>
      server.call(`/connections/${unknown}/revoke`, { method: 'POST' }),
    ),
    on('connections.revoke', '400 connection_not_revokable', async (stage) => {
      const server = await withClosedServices(stage)
      return server.call(`/connections/${await makeSignedIn(server)}/revoke`, { method: 'POST' })
    }),
    on('connections.reauthorize', '404 connection_not_found', (stage) => reauthorize(stage, unknown)),
    on('connections.reauthorize', '403 connection_owner_mismatch', async (stage) =>
      reauthorize(stage, await makeRevoked(stage), {}, stage.live.token),
    ),
    on('connections.reauthorize', '409 connection_not_reauthorizable', async (stage) =>
      reauthorize(stage, await makeConnection(stage)),
    ),
    on('connections.reauthorize', '400 api_key_invalid', async (stage) =>
      reauthorize(stage, await makeRevoked(stage, tavily), { apiKeyFields: { apiKey: '' } }),
    ),
    on('connections.reauthorize', '400 oauth_exchange_failed', async (stage) =>
      reauthorize(stage, await makeOdd(stage, { service_id: 'gitlab', auth_kind: 'oauth' })),
    ),
    on('connections.reauthorize', '400 unsupported_auth_kind', async (stage) =>
      reauthorize(stage, await makeOdd(stage, { service_id: 'gone', auth_kind: 'api_key' })),
    ),
  ],

  unknownIds: { 'connections.id': unknown },
  things: async ({ server, person: { token } }) => ({ 'connections.id': await makeConnection({ server }, { token }) }),
  places: [
    [
      'connections.create',
      'POST',
      (_, ids) => ({
        path: '/connections',
        body: newConnection({ integrationId: `mcp-server:${ids['mcpServerId']}` }),
      }),
    ],
  ],
  named: {
    integrationId: fc.constantFrom('deepwiki', 'tavily', 'gitlab'),
    integration: fc.constantFrom('deepwiki', 'tavily'),
    accountLabel: fc.constantFrom('', 'team'),
    apiKeyFields: fc.constantFrom({ apiKey: 'tvly-abc' }, {}),
  },
  hostile: { integrationId: fc.constant(`mcp-server:${inPool('mcpServerId')}`) },
  sharp: ['connections.create', 'connections.revoke', 'connections.reauthorize'],
}
