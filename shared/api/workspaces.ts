import { z } from 'zod'
import { reasoningEfforts, toolPermissionModes } from '../runs/spec.ts'
import { modelId, monthlyBudgetCents, sandboxSizes } from './agents.ts'
import { type CommandSpec, fileFlag } from './command.ts'
import { kebab } from './flags.ts'
import { egressHost } from './host-names.ts'
import { timestamp, workspacePublicId, workspaceUuid } from './ids.ts'
import { listOf } from './paging.ts'
import { defineRoute, peopleOnly, roles, adminsOnly } from './route.ts'

// Workspaces. Actions on one as a whole are in workspace-actions.ts.

/** 2 to 63: lowercase letters, digits, hyphens, starting with a letter. */
export const workspaceSlug = z
  .string()
  .regex(/^[a-z][a-z0-9-]{1,62}$/, 'must be 2 to 63 lower-case letters, digits and hyphens, a letter first')

export const maxTurns = z.number().int().min(1).max(1000)

export const workspace = z
  .object({
    id: workspaceUuid,
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
    monthlyBudgetCents: monthlyBudgetCents.nullable().describe('For the runs of all its agents.'),
    sandboxSize: z.enum(sandboxSizes).nullable(),
    oomResume: z.boolean(),
    sandboxEgress: z.array(z.string()),
    cloudEnabled: z.boolean(),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Workspace' })
export type Workspace = z.infer<typeof workspace>

export const userWorkspace = z
  .object({
    id: workspaceUuid,
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

/** Settings that PATCH takes, and POST with further keys. */
const settings = {
  name: z.string().trim().min(1).max(100).describe('Name.'),
  slug: workspaceSlug.describe('Its name in addresses; earlier slugs stay reserved.'),
  description: z.string().max(2000).nullable().describe('Description.'),
  contextMd: z.string().max(1_000_000).nullable().describe('Context that each run reads, as Markdown.'),
  defaultModel: modelId.nullable().describe('Model of agents that name none.'),
  defaultReasoningEffort: z.enum(reasoningEfforts).nullable().describe('Reasoning effort of agents that name none.'),
  defaultMaxTurns: maxTurns.nullable().describe('Most turns of a run whose agent sets no limit.'),
  backupModel: modelId.nullable().describe('Model for when the first one fails.'),
  mcpServers: z
    .record(z.string().min(1).max(200), z.unknown())
    .nullable()
    .describe("MCP servers added to each agent's own, by name; kept as sent."),
  idleCompaction: z
    .strictObject({
      enabled: z.boolean().describe('Whether idle sessions are compacted.'),
      afterMinutes: z.number().int().min(1).max(59).describe('Minutes of idling before it, 1 to 59.'),
      minTokens: z.number().int().min(0).max(100_000_000).describe('Sessions below this context size are left alone.'),
    })
    .partial()
    .meta({ id: 'IdleCompactionPatch' })
    .describe('Compacts an idle session before its prompt cache expires; keys left out stay.'),
  monthlyBudgetCents: monthlyBudgetCents
    .nullable()
    .describe('Cents the runs of all its agents may cost in a month (UTC); once they are spent, wakes are refused.'),
  sandboxSize: z.enum(sandboxSizes).nullable().describe('Size of cloud sandboxes; null: small.'),
  oomResume: z.boolean().describe('Resume a run that ran out of memory on the next size up.'),
  sandboxEgress: z
    .array(egressHost)
    .max(100)
    .nullable()
    .transform((hosts) => [...new Set(hosts)])
    .describe('Hosts that cloud sandboxes may reach over TLS, beside what their runs need; none by default.'),
  cloudEnabled: z
    .boolean()
    .describe('Whether agents may run in cloud sandboxes; runs that wait for one end when it is turned off.'),
}

const createBody = z
  .object(settings)
  .partial()
  .extend({
    name: settings.name,
    slug: settings.slug.optional().describe('Its name in addresses; made from the name when left out.'),
    issuePrefix: z
      .string()
      .regex(/^[A-Z][A-Z0-9]{0,9}$/, 'must be 1 to 10 capital letters and digits, a letter first')
      .optional()
      .describe('Prefix of every task key; made from the slug when left out.'),
  })
  .meta({ id: 'WorkspaceCreate' })

const updateBody = z.strictObject(settings).partial().meta({ id: 'WorkspaceUpdate' })

export const workspaceParams = z.object({ workspaceId: workspaceUuid.describe('UUID of the workspace.') })

/** Commands about workspaces use the login's workspace unless `--workspace` names one. */
export const workspaceFlag = {
  workspace: {
    target: 'params.workspaceId',
    description: "UUID of the workspace. Default: the login's.",
    fallback: 'own_workspace',
  },
} as const satisfies CommandSpec['flags']

/** Removes the flags of all settings: these commands are about one setting only. */
const noOthers = Object.fromEntries(Object.keys(settings).map((key) => [kebab(key), null]))
const isEnabled = (value: boolean) => ({
  ...noOthers,
  ...workspaceFlag,
  enabled: { target: 'body.idleCompaction.enabled', default: value, hidden: true },
})

export const workspaceRoutes = {
  current: defineRoute({
    id: 'workspaces.current',
    endpoint: 'GET /workspaces',
    aliases: { '/companies': 'companies.current' },
    summary: 'Read your workspace',
    reply: workspace,
  }),

  create: defineRoute({
    id: 'workspaces.create',
    endpoint: 'POST /workspaces',
    aliases: { '/companies': 'companies.create' },
    summary: 'Create a workspace and its billing company; you become its owner',
    description: 'Your login token stays bound to its own workspace: the new one needs a token of its own.',
    callers: peopleOnly,
    body: createBody,
    reply: workspace,
    status: 201,
    plainErrors: ['plain.workspace_slug_exists'],
    cli: { command: 'workspace create', example: 'svc workspace create --name Acme --slug acme' },
  }),

  bySlug: defineRoute({
    id: 'workspaces.bySlug',
    endpoint: 'GET /workspaces/by-slug/{slug}',
    aliases: { '/companies/by-slug/{slug}': 'companies.bySlug' },
    summary: 'Read the workspace with this slug; a slug it had before leads to the one it has now',
    params: z.object({ slug: z.string().min(1).max(200).describe('Slug of a workspace.') }),
    malformedParam: 'resource_not_found',
    reply: workspace,
    otherReplies: { 308: z.object({ slug: z.string().describe('The slug it has now.') }) },
    cli: {
      command: 'company use',
      positionals: [{ name: 'slug', target: 'params.slug' }],
      flow: true,
      example: 'svc company use acme',
    },
  }),

  get: defineRoute({
    id: 'workspaces.get',
    endpoint: 'GET /workspaces/{workspaceId}',
    aliases: {
      '/companies/{workspaceId}': 'companies.get',
      '/workspaces/{workspaceId}/settings': 'workspaces.settings.get',
      '/companies/{workspaceId}/settings': 'companies.settings.get',
    },
    summary: 'Read one workspace',
    params: workspaceParams,
    reply: workspace,
    cli: { command: 'workspace get', flags: workspaceFlag, example: 'svc workspace get' },
  }),

  update: defineRoute({
    id: 'workspaces.update',
    endpoint: 'PATCH /workspaces/{workspaceId}',
    aliases: { '/companies/{workspaceId}': 'companies.update' },
    summary: 'Change settings of a workspace',
    description: 'Keys that are present are written, absent keys stay, unknown keys are refused.',
    callers: adminsOnly,
    params: workspaceParams,
    body: updateBody,
    reply: workspace,
    errors: ['slug_taken'],
    cli: [
      {
        command: 'workspace update',
        flags: {
          ...workspaceFlag,
          'context-md-file': fileFlag('body.contextMd', 'the context that each run reads'),
        },
        example: 'svc workspace update --sandbox-size medium --oom-resume',
      },
      {
        command: 'workspace idle-compaction',
        flags: {
          ...noOthers,
          ...workspaceFlag,
          'after-minutes': { target: 'body.idleCompaction.afterMinutes', required: false },
          'min-tokens': { target: 'body.idleCompaction.minTokens', required: false },
        },
        example: 'svc workspace idle-compaction --after-minutes 50 --min-tokens 80000',
      },
      {
        command: 'workspace enable-idle-compaction',
        flags: isEnabled(true),
        example: 'svc workspace enable-idle-compaction',
      },
      {
        command: 'workspace disable-idle-compaction',
        flags: isEnabled(false),
        example: 'svc workspace disable-idle-compaction',
      },
    ],
  }),

  stats: defineRoute({
    id: 'workspaces.stats',
    endpoint: 'GET /workspaces/stats',
    aliases: { '/companies/stats': 'companies.stats' },
    summary:
      'Count the agents, tasks, projects, workflows, files, pages and learnings that you can see in your workspace',
    reply: z
      .object({
        agents: z.number().int(),
        tasks: z.number().int(),
        projects: z.number().int(),
        workflows: z.number().int().describe('Without retired and built-in ones.'),
        files: z.number().int(),
        fileBytes: z.number().int().describe('Of the current versions of these files.'),
        wikiPages: z.number().int().describe('Without archived ones.'),
        learnings: z.number().int().describe('Reviewed or not.'),
      })
      .meta({ id: 'WorkspaceStats' }),
    cli: { command: 'workspace stats', example: 'svc workspace stats' },
  }),

  userList: defineRoute({
    id: 'user.workspaces.list',
    endpoint: 'GET /user/workspaces',
    aliases: { '/user/companies': 'user.companies.list' },
    summary: 'List the workspaces you belong to',
    callers: peopleOnly,
    reply: listOf(userWorkspace),
    cli: { command: 'company list', example: 'svc company list' },
  }),
} as const

/** The defaults of a company's runs: `maxTurns` is the workspace's `defaultMaxTurns`. */
export const companyConfig = z
  .object({
    toolPermissionDefault: z.enum(toolPermissionModes).nullable(),
    maxTurns: maxTurns.nullable(),
  })
  .meta({ id: 'CompanyConfig' })
