import { z } from 'zod'
import { reasoningEfforts } from '../runs/spec.ts'
import { sandboxSizes } from './agents.ts'
import { timestamp, userPublicId, uuid, workspacePublicId } from './ids.ts'
import { listOf } from './paging.ts'
import { defineRoute, peopleOnly, roles } from './route.ts'

/** Workspaces and their members (document 1, "Workspace"). */

export const workspaceSlug = z.string().regex(/^[a-z][a-z0-9-]{1,62}$/)

export const workspace = z
  .object({
    id: uuid,
    name: z.string(),
    slug: z.string(),
    description: z.string().nullable(),
    status: z.enum(['active', 'archived']),
    issuePrefix: z.string(),
    issueCounter: z.number().int(),
    contextMd: z.string().nullable(),
    defaultModel: z.string().nullable(),
    defaultReasoningEffort: z.enum(reasoningEfforts).nullable(),
    defaultMaxTurns: z.number().int().nullable(),
    backupModel: z.string().nullable(),
    mcpServers: z.record(z.string(), z.unknown()).nullable(),
    agentsPaused: z.boolean(),
    idleCompaction: z.object({
      enabled: z.boolean(),
      afterMinutes: z.number().int().min(1).max(59),
      minTokens: z.number().int(),
    }),
    sandboxSize: z.enum(sandboxSizes).nullable(),
    oomResume: z.boolean(),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Workspace' })
export type Workspace = z.infer<typeof workspace>

export const userWorkspace = z
  .object({
    id: uuid,
    publicId: workspacePublicId,
    name: z.string(),
    slug: z.string(),
    status: z.enum(['active', 'archived']),
    role: z.enum(roles).describe('Yours in it.'),
    companyId: z.string(),
    companyName: z.string(),
  })
  .meta({ id: 'UserWorkspace' })
export type UserWorkspace = z.infer<typeof userWorkspace>

export const member = z
  .object({ userId: userPublicId, name: z.string(), email: z.string(), role: z.enum(roles) })
  .meta({ id: 'Member' })
export type Member = z.infer<typeof member>

export const workspaceRoutes = {
  current: defineRoute({
    id: 'workspaces.current',
    method: 'GET',
    path: '/workspaces',
    aliases: ['/companies'],
    summary: 'Read your workspace',
    reply: workspace,
    cli: { command: 'workspace get', example: 'svc workspace get' },
  }),

  userList: defineRoute({
    id: 'user.workspaces.list',
    method: 'GET',
    path: '/user/workspaces',
    aliases: ['/user/companies'],
    summary: 'List the workspaces you belong to',
    callers: peopleOnly,
    reply: listOf(userWorkspace),
    cli: { command: 'company list', example: 'svc company list' },
  }),
} as const

export const memberRoutes = {
  list: defineRoute({
    id: 'members.list',
    method: 'GET',
    path: '/members',
    summary: 'List the people in your workspace',
    callers: { person: 'member', agent: { refused: 'agent_no_workspace_access' } },
    reply: listOf(member),
    errors: ['agent_no_workspace_access'],
    cli: { command: 'member list', example: 'svc member list' },
  }),
} as const
