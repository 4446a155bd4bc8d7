import { z } from 'zod'
import { userPublicId, workspaceUuid } from './ids.ts'
import { listOf } from './paging.ts'
import { defineRoute, roles } from './route.ts'
import { workspaceFlag, workspaceParams } from './workspaces.ts'

// People of a workspace. These routes answer under `/workspaces` only. Inviting, changing a role, removing a member and
// accepting an invite are not offered: the operator adds people.

export const member = z
  .object({ userId: userPublicId, name: z.string(), email: z.string(), role: z.enum(roles) })
  .meta({ id: 'Member' })
export type Member = z.infer<typeof member>

const notForAgents = {
  callers: { person: 'member', agent: { refused: 'agent_no_workspace_access' } },
  errors: ['agent_no_workspace_access'],
} as const
const unavailable = { ...notForAgents, plainErrors: ['plain.members_unavailable'] } as const

export const memberRoutes = {
  list: defineRoute({
    id: 'members.list',
    endpoint: 'GET /members',
    summary: 'List the people in your workspace',
    ...notForAgents,
    reply: listOf(member),
    cli: { command: 'member list', example: 'svc member list' },
  }),

  ofWorkspace: defineRoute({
    id: 'workspaces.members.list',
    endpoint: 'GET /workspaces/{workspaceId}/members',
    summary: 'List the people in a workspace; admins also get the pending invites',
    ...notForAgents,
    params: workspaceParams,
    reply: listOf(member).extend({
      invites: z
        .array(z.object({ email: z.string(), role: z.enum(roles) }))
        .optional()
        .describe('For admins. Empty, since nobody can be invited.'),
    }),
    cli: { command: 'workspace members', flags: workspaceFlag, example: 'svc workspace members' },
  }),

  leave: defineRoute({
    id: 'workspaces.leave',
    endpoint: 'POST /workspaces/{workspaceId}/leave',
    summary: 'Leave a workspace: your tokens and devices in it stop working; the owner cannot leave',
    callers: notForAgents.callers,
    params: workspaceParams,
    reply: z.object({ workspaceId: workspaceUuid, left: z.literal(true) }).meta({ id: 'WorkspaceLeft' }),
    errors: ['agent_no_workspace_access', 'http_exception'],
    cli: { command: 'workspace leave', flags: workspaceFlag, example: 'svc workspace leave' },
  }),

  invite: defineRoute({
    id: 'members.invite',
    endpoint: 'POST /workspaces/{workspaceId}/invites',
    aliases: { '/workspaces/{workspaceId}/members': 'members.add' },
    summary: 'Inviting people is not available (501)',
    params: workspaceParams,
    ...unavailable,
  }),

  changeRole: defineRoute({
    id: 'members.changeRole',
    endpoint: 'PATCH /workspaces/{workspaceId}/members/{userId}',
    summary: 'Changing a role is not available (501)',
    params: workspaceParams.extend({ userId: userPublicId }),
    ...unavailable,
  }),

  remove: defineRoute({
    id: 'members.remove',
    endpoint: 'DELETE /workspaces/{workspaceId}/members/{userId}',
    summary: 'Removing a member is not available (501)',
    params: workspaceParams.extend({ userId: userPublicId }),
    ...unavailable,
  }),

  acceptInvite: defineRoute({
    id: 'members.acceptInvite',
    endpoint: 'POST /invites/{token}/accept',
    summary: 'Accepting an invite is not available (501)',
    params: z.object({ token: z.string().min(1).max(500).describe('The token of the invitation.') }),
    ...unavailable,
  }),
} as const
