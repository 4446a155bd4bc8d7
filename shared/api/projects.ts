import { z } from 'zod'
import { agentParams, agentPositional, visibilities } from './agents.ts'
import { agentRef, agentUuid, personUuid, projectUuid, timestamp, workspaceUuid } from './ids.ts'
import { listOf, pageParams } from './paging.ts'
import { defineRoute } from './route.ts'

export const projectStatuses = ['active', 'archived', 'completed'] as const

export const project = z
  .object({
    object: z.literal('project'),
    id: projectUuid,
    workspaceId: workspaceUuid,
    name: z.string(),
    description: z.string().describe('Empty when there is none.'),
    descriptionPreview: z.string().nullable().describe('Its first 220 characters; null when there is none.'),
    status: z.enum(projectStatuses),
    prefix: z.string().nullable(),
    leadAgentId: agentUuid.nullable().describe('UUID of the lead agent.'),
    ownerUserId: personUuid.nullable().describe('null when an agent created it.'),
    visibility: z.enum(visibilities),
    repoUrl: z.string().nullable(),
    deletedAt: timestamp.nullable(),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Project' })
export type Project = z.infer<typeof project>

export const projectSummary = project
  .omit({
    workspaceId: true,
    description: true,
    ownerUserId: true,
    visibility: true,
    repoUrl: true,
    deletedAt: true,
  })
  .meta({ id: 'ProjectSummary' })
export type ProjectSummary = z.infer<typeof projectSummary>

export const projectConfig = project
  .pick({ status: true, leadAgentId: true, repoUrl: true, prefix: true })
  .meta({ id: 'ProjectConfig' })
export type ProjectConfig = z.infer<typeof projectConfig>

const identity = {
  name: z.string().trim().min(1).max(200).describe('Name.'),
  description: z.string().max(100_000).describe('Description.'),
  visibility: z
    .enum(visibilities)
    .describe('`private`: only its owner, workspace admins and agents let into it see it.'),
}

/** Refuses an address with a password in it: everybody who sees the project would see it. */
const repoUrl = z
  .string()
  .trim()
  .min(1)
  .max(2000)
  .regex(/^[^\s\p{Cc}]+$/u, 'must be an address without spaces')
  .refine((text) => !/^[a-z][a-z0-9+.-]*:\/\/[^/@:]*:[^/@]*@/i.test(text), 'has a password in it')
  .describe('Address of its repository.')
const leadAgentId = agentRef.nullable().describe('The agent that leads it.')

const createBody = z
  .object({
    name: identity.name,
    description: identity.description.nullable().default(''),
    visibility: identity.visibility.default('company'),
    prefix: z
      .string()
      .regex(/^[A-Z]{2,5}$/, 'must be 2 to 5 capital letters')
      .nullable()
      .optional()
      .describe('2 to 5 capital letters, its own in the workspace; fixed once created.'),
    leadAgentId: leadAgentId.optional(),
    repoUrl: repoUrl.nullable().optional(),
  })
  .meta({ id: 'ProjectCreate' })

const updateBody = z
  .object({ ...identity, description: identity.description.nullable() })
  .partial()
  .meta({ id: 'ProjectUpdate' })

const configBody = z
  .object({
    status: z.enum(projectStatuses).describe('New status; any may follow any other.'),
    leadAgentId,
    repoUrl: repoUrl.nullable(),
  })
  .partial()
  .meta({ id: 'ProjectConfigUpdate' })

const params = z.object({ projectId: projectUuid.describe('UUID of the project.') })
/** A projectId that is no UUID names nothing, so the answer is a plain 404. */
const byId = { params, malformedParam: 'resource_not_found' } as const
const positionals = [{ name: 'id', target: 'params.projectId' }] as const
const exampleId = '5b0c7d0e-6a7e-4b52-9a8e-2f9d1c3e4a6b'

export const projectRoutes = {
  list: defineRoute({
    id: 'projects.list',
    endpoint: 'GET /projects',
    summary: 'List the projects you can see, newest first',
    query: z.object({
      status: z
        .array(z.enum([...projectStatuses, 'deleted']))
        .optional()
        .describe('Only these; `deleted` lists deleted projects (people only).'),
      lead: agentRef.optional().describe('Only those this agent leads.'),
      q: z.string().max(100).optional().describe('Text in name, description or prefix.'),
      ...pageParams,
    }),
    reply: listOf(projectSummary),
    errors: ['list_deleted_forbidden'],
    cli: { command: 'project list', example: 'svc project list --status active' },
  }),

  create: defineRoute({
    id: 'projects.create',
    endpoint: 'POST /projects',
    summary: 'Create a project',
    body: createBody,
    reply: project,
    status: 201,
    errors: ['prefix_reserved', 'duplicate_prefix', 'agent_not_found'],
    cli: {
      command: 'project create',
      flags: { 'lead-agent-id': { aliases: ['lead'] } },
      example: 'svc project create --name Website --prefix WEB',
    },
  }),

  get: defineRoute({
    id: 'projects.get',
    endpoint: 'GET /projects/{projectId}',
    summary: 'Read one project',
    ...byId,
    query: z.object({ includeDeleted: z.boolean().optional().describe('Also when it is deleted (people only).') }),
    reply: project,
    cli: { command: 'project get', positionals, example: `svc project get ${exampleId}` },
  }),

  update: defineRoute({
    id: 'projects.update',
    endpoint: 'PATCH /projects/{projectId}',
    summary: 'Change name, description or visibility of a project',
    description: 'Who sees a private project is for its owner and workspace admins.',
    ...byId,
    body: updateBody,
    reply: project,
    cli: { command: 'project update', positionals, example: `svc project update ${exampleId} --name Shop` },
  }),

  delete: defineRoute({
    id: 'projects.delete',
    endpoint: 'DELETE /projects/{projectId}',
    summary: 'Delete a project; it can be restored',
    ...byId,
    cli: { command: 'project delete', asks: true, positionals, example: `svc project delete ${exampleId}` },
  }),

  restore: defineRoute({
    id: 'projects.restore',
    endpoint: 'POST /projects/{projectId}/restore',
    summary: 'Bring a deleted project back',
    ...byId,
    reply: project,
    errors: ['restore_forbidden', 'not_deleted'],
    cli: { command: 'project restore', positionals, example: `svc project restore ${exampleId}` },
  }),

  config: defineRoute({
    id: 'projects.config.get',
    endpoint: 'GET /projects/{projectId}/config',
    summary: 'Read status, lead agent, repository and prefix of a project',
    ...byId,
    reply: projectConfig,
    cli: { command: 'project config get', positionals, example: `svc project config get ${exampleId}` },
  }),

  updateConfig: defineRoute({
    id: 'projects.config.update',
    endpoint: 'PATCH /projects/{projectId}/config',
    summary: 'Change status, lead agent or repository of a project',
    description: 'The lead agent sees the project: that of a private one is for its owner and workspace admins.',
    ...byId,
    body: configBody,
    reply: projectConfig,
    errors: ['agent_not_found'],
    cli: {
      command: 'project config set',
      positionals,
      flags: { 'lead-agent-id': { aliases: ['lead'] } },
      example: `svc project config set ${exampleId} --status completed`,
    },
  }),

  transferOwner: defineRoute({
    id: 'projects.transferOwner',
    endpoint: 'POST /projects/{projectId}/transfer-owner',
    summary: 'Give a project another owner',
    ...byId,
    body: z
      .object({ newOwnerId: z.string().min(1).max(100).describe('The new owner: `usr_` id or UUID.') })
      .meta({ id: 'ProjectTransferOwner' }),
    reply: project,
    errors: ['owner_transfer.forbidden', 'owner_transfer.same_owner', 'owner_transfer.user_not_found'],
    cli: {
      command: 'project transfer-owner',
      positionals,
      flags: { 'new-owner': { target: 'body.newOwnerId', aliases: ['new-owner-id'] } },
      example: `svc project transfer-owner ${exampleId} --new-owner usr_7aZ1qX5vNmG9kT3r`,
    },
  }),

  ofAgent: defineRoute({
    id: 'agents.projects',
    endpoint: 'GET /agents/{agentId}/projects',
    summary: 'List the projects an agent was let into: those it leads and those it created',
    params: agentParams,
    query: z.object(pageParams),
    reply: listOf(projectSummary),
    cli: {
      command: 'agent projects',
      positionals: [{ ...agentPositional, default: 'me' }],
      example: 'svc agent projects @builder',
    },
  }),
} as const
