import fc from 'fast-check'
import { nobody, plain } from './kit/recipe.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

const unavailable = 'inviting and the like are not available'

export const memberFacts: ResourceFacts = {
  requests: {
    'members.list': plain,
    'workspaces.members.list': ({ owner }) => ({ params: { workspaceId: owner.workspaceId } }),
    'workspaces.leave': async (stage) => {
      const { workspaceId, token } = await stage.server.addPerson('member')
      return { params: { workspaceId }, token, endsCaller: true }
    },
  },
  plainErrors: {
    'plain.members_unavailable': ({ stage, send }) => send({ params: { workspaceId: stage.owner.workspaceId } }),
  },
  withoutCommand: {
    'members.invite': unavailable,
    'members.changeRole': unavailable,
    'members.remove': unavailable,
    'members.acceptInvite': unavailable,
  },

  unknownIds: { userId: nobody },
  things: async ({ colleague }) => ({ userId: colleague.userId }),
  hostile: { role: fc.constantFrom('admin', 'owner') },
  ends: { 'workspaces.leave': 'caller' },
}
