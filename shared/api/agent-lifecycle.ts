import { z } from 'zod'
import { agent, agentName, agentParams, agentPositional, agentWithAudit, orApproval } from './agents.ts'
import { taskId } from './ids.ts'
import { defineRoute, peopleOnly } from './route.ts'

// Deleting, restoring and copying agents, and giving them another owner.

/** The most tasks that the answer to a deletion names. */
export const mostUnassignedNamed = 1_000

export const agentLifecycleRoutes = {
  delete: defineRoute({
    id: 'agents.delete',
    endpoint: 'DELETE /agents/{agentId}',
    summary: 'Delete an agent: its live runs end and its open tasks are unassigned; it can be restored',
    ...orApproval,
    params: agentParams,
    reply: z
      .object({
        agent,
        unassignedTasks: z
          .array(z.object({ id: taskId, key: z.string(), title: z.string() }))
          .max(mostUnassignedNamed)
          .describe(
            'Open tasks that were assigned to it, up to 1,000. Where there are many, the last are unassigned soon after the answer.',
          ),
        hasMore: z.boolean().optional().describe('It was assigned to more open tasks than are listed.'),
      })
      .meta({ id: 'AgentDeleted' }),
    errors: ['platform_change_requires_run'],
    cli: { command: 'agent delete', asks: true, positionals: [agentPositional], example: 'svc agent delete @builder' },
  }),

  restore: defineRoute({
    id: 'agents.restore',
    endpoint: 'POST /agents/{agentId}/restore',
    summary: 'Bring a deleted agent back, with the status it had',
    callers: { person: 'member', agent: { refused: 'restore_forbidden' } },
    params: agentParams,
    reply: agent,
    errors: ['restore_forbidden', 'not_deleted'],
    cli: { command: 'agent restore', positionals: [agentPositional], example: 'svc agent restore @builder' },
  }),

  clone: defineRoute({
    id: 'agents.clone',
    endpoint: 'POST /agents/{agentId}/clones',
    summary: 'Copy an agent under a new name; you own the copy',
    description:
      'Capabilities, and tools allowed without asking, are copied for workspace admins only; a default folder where you may use it.',
    ...orApproval,
    params: agentParams,
    body: z.object({ name: agentName.describe('Name of the copy.') }).meta({ id: 'AgentClone' }),
    reply: agentWithAudit,
    status: 201,
    errors: ['handle_taken', 'platform_change_requires_run'],
    cli: {
      command: 'agent clone',
      positionals: [agentPositional],
      example: 'svc agent clone @builder --name "Second Builder"',
    },
  }),

  transferOwner: defineRoute({
    id: 'agents.transferOwner',
    endpoint: 'POST /agents/{agentId}/transfer-owner',
    summary: 'Give an agent another owner',
    description:
      'If the giver is no workspace admin, the agent runs on no device of the new owner until they agree: by POST /agents/{agentId}/accept, by starting it, or by changing it.',
    callers: { person: 'member', agent: { refused: 'owner_transfer.forbidden' } },
    params: agentParams,
    body: z
      .object({ newOwnerId: z.string().min(1).max(100).describe('The new owner: `usr_` id or UUID.') })
      .meta({ id: 'AgentTransferOwner' }),
    reply: agent,
    errors: ['owner_transfer.forbidden', 'owner_transfer.same_owner', 'owner_transfer.user_not_found'],
    cli: {
      command: 'agent transfer-owner',
      positionals: [agentPositional],
      flags: { 'new-owner': { target: 'body.newOwnerId', aliases: ['new-owner-id'] } },
      example: 'svc agent transfer-owner @builder --new-owner usr_7aZ1qX5vNmG9kT3r',
    },
  }),

  accept: defineRoute({
    id: 'agents.accept',
    endpoint: 'POST /agents/{agentId}/accept',
    summary: 'Agree to an agent that was given to you, so that it may run on your devices',
    description: 'Only its owner may agree. Agreeing again changes nothing.',
    callers: peopleOnly,
    params: agentParams,
    reply: agent,
    cli: { command: 'agent accept', positionals: [agentPositional], example: 'svc agent accept @builder' },
  }),
} as const
