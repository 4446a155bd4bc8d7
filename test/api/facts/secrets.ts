import fc from 'fast-check'
import type { TestServer } from '../../kit/server.ts'
import type { Stage } from '../contract/stage.ts'
import { plain } from './kit/recipe.ts'
import type { Recipe, ResourceFacts } from './kit/resource-facts.ts'

const newSecret = ({ world }: TestServer) => ({ name: `secret-${world.uuid()}`, value: 's3cret' })
const makeSecret = async ({ server }: Stage, body: Record<string, unknown> = {}): Promise<string> =>
  (await server.ok('/secrets', { body: { ...newSecret(server), ...body } })).id
const aSecret: Recipe = async (stage) => ({ params: { secretId: await makeSecret(stage) } })

export const secretFacts: ResourceFacts = {
  requests: {
    'secrets.list': plain,
    'secrets.create': ({ server }) => ({ body: newSecret(server) }),
    'secrets.update': async (stage) => ({ ...(await aSecret(stage)), body: { cloudPlain: true } }),
    'secrets.reveal': aSecret,
    'secrets.grant': async (stage) => ({ ...(await aSecret(stage)), body: { agentId: await stage.agent() } }),
    'secrets.grants.revoke': async (stage) => {
      const agentId = await stage.agent()
      return { params: { secretId: await makeSecret(stage, { agentId }), agentId } }
    },
    'secrets.delete': aSecret,
  },

  unknownIds: { secretId: 'sec_0000000000000000' },
  things: async ({ server, person, agentId }) => {
    const body = { ...newSecret(server), envVarName: 'OWN_KEY', agentId }
    return { secretId: (await server.ok('/secrets', { token: person.token, body })).id }
  },
  hostile: {
    brokerHosts: fc.constantFrom(['api.example.com'], ['169.254.169.254'], ['*'], ['a.test:0'], []),
    envVarName: fc.constantFrom('DEPLOY_KEY', 'LD_PRELOAD', 'ANTHROPIC_BASE_URL'),
  },
  sharp: [
    'secrets.create',
    'secrets.update',
    'secrets.reveal',
    'secrets.grant',
    'secrets.grants.revoke',
    'secrets.delete',
  ],
}
