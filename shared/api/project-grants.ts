import { z } from 'zod'
import { agentId, agentRef, projectUuid, timestamp } from './ids.ts'
import { defineRoute, peopleOnly } from './route.ts'

// Agents that were let into a private project.

export const projectGrant = z
  .object({
    object: z.literal('project_grant'),
    agent: z.object({ id: agentId, handle: z.string(), name: z.string() }),
    createdAt: timestamp,
  })
  .meta({ id: 'ProjectGrant' })

const grants = z.object({ object: z.literal('list'), data: z.array(projectGrant) }).meta({ id: 'ProjectGrants' })
const params = z.object({ projectId: projectUuid.describe('UUID of the project.') })
const ofProject = { callers: peopleOnly, params, malformedParam: 'resource_not_found' } as const
const positionals = [{ name: 'id', target: 'params.projectId' }] as const
const exampleId = '5b0c7d0e-6a7e-4b52-9a8e-2f9d1c3e4a6b'

export const projectGrantRoutes = {
  list: defineRoute({
    id: 'projects.grants.list',
    endpoint: 'GET /projects/{projectId}/grants',
    summary: 'List the agents that were let into a project, first let in first',
    ...ofProject,
    reply: grants,
    cli: { command: 'project grants', positionals, example: `svc project grants ${exampleId}` },
  }),

  add: defineRoute({
    id: 'projects.grants.add',
    endpoint: 'POST /projects/{projectId}/grants',
    summary: 'Let an agent into a private project; for its owner and workspace admins',
    ...ofProject,
    body: z.object({ agentId: agentRef }).meta({ id: 'ProjectGrantAdd' }),
    reply: grants,
    errors: ['agent_not_found'],
    cli: {
      command: 'project grant',
      positionals,
      flags: { agent: { target: 'body.agentId' } },
      example: `svc project grant ${exampleId} --agent @builder`,
    },
  }),

  remove: defineRoute({
    id: 'projects.grants.remove',
    endpoint: 'DELETE /projects/{projectId}/grants/{agentId}',
    summary: 'Take an agent out of a private project again',
    ...ofProject,
    params: params.extend({ agentId: agentRef }),
    errors: ['agent_not_found'],
    cli: {
      command: 'project revoke-grant',
      positionals,
      flags: { agent: { target: 'params.agentId' } },
      example: `svc project revoke-grant ${exampleId} --agent @builder`,
    },
  }),
} as const
