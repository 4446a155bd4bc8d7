import { newRepo, plain } from './kit/recipe.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

export const repoFacts: ResourceFacts = {
  requests: {
    'repos.list': plain,
    'repos.add': ({ server }) => ({ body: { gitRemote: `github.com/acme/${server.world.uuid()}` } }),
    'repos.remove': async (stage) => ({ params: { repoId: await newRepo(stage) } }),
  },

  unknownIds: { repoId: '00000000-0000-4000-8000-00000000000f' },
  things: async (keeper) => ({ repoId: await newRepo(keeper, keeper.person.token) }),
}
