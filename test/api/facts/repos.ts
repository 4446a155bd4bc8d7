import { plain } from './kit/recipe.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

const newRemote = () => ({ gitRemote: `github.com/acme/${crypto.randomUUID()}` })

export const repoFacts: ResourceFacts = {
  requests: {
    'repos.list': plain,
    'repos.add': () => ({ body: newRemote() }),
    'repos.remove': async ({ server }) => ({
      params: { repoId: (await server.ok('/repos', { body: newRemote() })).id },
    }),
  },

  unknownIds: { repoId: '00000000-0000-4000-8000-00000000000f' },
  things: async ({ server, person }) => ({
    repoId: (await server.ok('/repos', { token: person.token, body: newRemote() })).id,
  }),
}
