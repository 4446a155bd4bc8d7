import type { TestServer } from '../../kit/server.ts'
import { plain } from './kit/recipe.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

const newRemote = ({ world }: TestServer) => ({ gitRemote: `github.com/acme/${world.uuid()}` })

export const repoFacts: ResourceFacts = {
  requests: {
    'repos.list': plain,
    'repos.add': ({ server }) => ({ body: newRemote(server) }),
    'repos.remove': async ({ server }) => ({
      params: { repoId: (await server.ok('/repos', { body: newRemote(server) })).id },
    }),
  },

  unknownIds: { repoId: '00000000-0000-4000-8000-00000000000f' },
  things: async ({ server, person }) => ({
    repoId: (await server.ok('/repos', { token: person.token, body: newRemote(server) })).id,
  }),
}
