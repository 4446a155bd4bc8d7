import fc from 'fast-check'
import { slug } from '../contract/stage.ts'
import { evil, on, patch, plain } from './kit/recipe.ts'
import type { Recipe, ResourceFacts } from './kit/resource-facts.ts'

const ownWorkspace: Recipe = ({ owner }) => ({ params: { workspaceId: owner.workspaceId } })

export const workspaceFacts: ResourceFacts = {
  requests: {
    'workspaces.current': plain,
    'workspaces.create': () => ({ body: { name: 'Acme', slug: slug() } }),
    'workspaces.bySlug': () => ({ params: { slug: 'main' } }),
    'workspaces.get': ownWorkspace,
    'workspaces.update': async (stage) => ({ ...(await ownWorkspace(stage)), body: { contextMd: '# Context' } }),
    'workspaces.stats': plain,
    'user.workspaces.list': plain,
  },
  codes: [
    on('workspaces.update', '409 slug_taken', async (stage) => {
      const { workspaceId, token } = await stage.stranger()
      return stage.server.call(`/workspaces/${workspaceId}`, patch({ slug: 'main' }, token))
    }),
  ],
  plainErrors: {
    'plain.workspace_slug_exists': ({ send }) => send({ body: { name: 'x', slug: 'main' } }),
  },
  withoutCommand: { 'workspaces.current': '`workspace get` reads by id' },

  unknownIds: { workspaceId: '00000000-0000-4000-8000-00000000000a', slug: 'nobodys-slug' },
  things: async ({ server, person }) => ({
    workspaceId: person.workspaceId,
    slug: (await server.ok('/workspaces', { token: person.token })).slug,
  }),
  seldomNamed: ['workspaceId', 'slug'],
  hostile: { mcpServers: fc.constantFrom<unknown>({ evil: { command: 'sh', args: ['-c', evil] } }, null) },
  sharp: ['workspaces.update'],
}
