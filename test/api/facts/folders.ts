import fc from 'fast-check'
import { enrol } from '../../kit/fake-device.ts'
import { newRepo, on, patch, plain } from './kit/recipe.ts'
import type { Recipe, ResourceFacts } from './kit/resource-facts.ts'

const aFolder: Recipe = async (stage) => ({ params: { shortId: await stage.folder() } })

export const folderFacts: ResourceFacts = {
  requests: {
    'folders.list': plain,
    'folders.create': async (stage) => ({
      body: { displayName: 'site', rootPath: '/home/me/site', deviceId: (await stage.enrolled()).publicId },
    }),
    'folders.update': async (stage) => ({ ...(await aFolder(stage)), body: { repoId: await newRepo(stage) } }),
    'folders.delete': aFolder,
    'folders.gitRemote': aFolder,
  },
  codes: [
    on('folders.update', '404 repo_not_found', async (stage) =>
      stage.server.call(`/folders/${await stage.folder()}`, patch({ repoId: crypto.randomUUID() })),
    ),
    on('folders.update', '409 repo_already_mapped', async (stage) => {
      const deviceId = (await stage.enrolled()).publicId
      const [one, two] = [await stage.folder({ deviceId }), await stage.folder({ deviceId })]
      const body = { repoId: await newRepo(stage) }
      await stage.server.ok(`/folders/${one}`, patch(body))
      return stage.server.call(`/folders/${two}`, patch(body))
    }),
  ],

  unknownIds: { shortId: 'fs_0000000000000000' },
  things: async ({ server, person }) => {
    const { token } = person
    const { publicId } = await enrol(server, { token })
    const body = { displayName: 'site', rootPath: '/tmp', deviceId: publicId }
    return { shortId: (await server.ok('/folders', { token, body })).shortId }
  },
  places: [
    [
      'folders.create',
      'POST',
      (_, ids) => ({ path: '/folders', body: { displayName: 'f', rootPath: '/f', deviceId: ids['id'] } }),
    ],
  ],
  named: { rootPath: fc.constantFrom('/home/me/site', '/tmp', 'C:\\code') },
}
