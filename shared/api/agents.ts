import { z } from 'zod'
import { agentPrograms, harnessNames } from '../runs/harnesses.ts'
import { commandProtocols, harnessCommand, reasoningEfforts, toolPermissionModes } from '../runs/spec.ts'
import { skillFolders } from '../runs/skills.ts'
import {
  agentId,
  agentRef,
  agentUuid,
  approvalId,
  folderShortId,
  personUuid,
  repoUuid,
  timestamp,
  workspaceUuid,
} from './ids.ts'
import { idsParam, listOrBatchOf, pageParams } from './paging.ts'
import { defineRoute, orPlatformChange } from './route.ts'
import { fileFlag } from './command.ts'

// Agents: their identity. Settings are in agent-config.ts, starting runs is in agent-runs.ts.

export const agentStatuses = ['active', 'idle', 'running', 'terminated', 'error'] as const
export type AgentStatus = (typeof agentStatuses)[number]
export const environments = ['device', 'cloud'] as const
export const visibilities = ['company', 'private'] as const
export const sandboxSizes = ['small', 'medium', 'large'] as const
export type SandboxSize = (typeof sandboxSizes)[number]

export const agentName = z.string().trim().min(1).max(100).describe('Name.')
export const modelId = z.string().trim().min(1).max(200).describe('Model id.')
export const monthlyBudgetCents = z
  .number()
  .int()
  .min(0)
  .max(100_000_000)
  .describe('Cents its runs may cost in a month (UTC); once they are spent, wakes are refused. null: no limit.')
export const agentMdText = z.string().max(1_000_000).describe('AGENT.md, the instructions each run reads.')

export const agentParams = z.object({ agentId: agentRef })
/** The positional of commands about one agent. */
export const agentPositional = { name: 'agent', target: 'params.agentId' } as const
export const ownAgentPositional = { ...agentPositional, default: 'me' } as const

export const agent = z
  .object({
    object: z.literal('agent'),
    id: agentId,
    handle: z.string().describe('@handle made from the name; the `agt_` id when there is none.'),
    name: z.string(),
    role: z.string(),
    description: z.string().nullable(),
    status: z.enum(agentStatuses),
    model: z.string().nullable().describe("null: the workspace's default."),
    backupModel: z.string().nullable(),
    harness: z.enum(harnessNames),
    environment: z.enum(environments),
    workspaceId: workspaceUuid,
    defaultFolderId: folderShortId.nullable().describe('Folder its runs start in; null: the home folder.'),
    defaultRepoId: repoUuid.nullable(),
    ownerUserId: personUuid.nullable(),
    visibility: z.enum(visibilities),
    reportingTo: agentUuid.nullable().describe('UUID of the agent this one reports to.'),
    wakeOnAssignment: z.boolean(),
    wakeOnHook: z.boolean(),
    toolPermissionMode: z.enum(toolPermissionModes).nullable().describe('null inherits.'),
    spentMonthlyCents: z.number().int().describe('Cost of its runs that ended this month (UTC), in cents.'),
    lastRunAt: timestamp.nullable(),
    deletedAt: timestamp.nullable(),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Agent' })
export type Agent = z.infer<typeof agent>

/** A finding of the agent doctor. It never blocks a write. */
export const agentWarning = z
  .object({
    code: z.string(),
    severity: z.enum(['info', 'warning', 'error']),
    message: z.string(),
    param: z.string().nullable().describe('The setting it is about.'),
  })
  .meta({ id: 'AgentWarning' })
export type AgentWarning = z.infer<typeof agentWarning>

export const agentWithAudit = agent.extend({ audit: z.array(agentWarning) }).meta({ id: 'AgentWithAudit' })

/** The answer to an agent's write that a person must approve first. */
export const platformChange = z
  .object({ object: z.literal('platform_change'), approvalId, status: z.literal('pending') })
  .meta({ id: 'PlatformChange' })
export type PlatformChange = z.infer<typeof platformChange>
/** A write that an agent makes only by approval. */
export const orApproval = { callers: orPlatformChange, otherReplies: { 202: platformChange } } as const

const identity = {
  role: z.string().trim().min(1).max(100).describe('A label; it changes nothing.'),
  description: z
    .string()
    .max(2000)
    .nullable()
    .describe('What the agent is good for; the service reads it to pick one.'),
  visibility: z.enum(visibilities).describe('`private`: only its owner and workspace admins see it.'),
  reportingTo: agentRef.nullable().describe('The agent it reports to.'),
  defaultFolderId: folderShortId.nullable().describe('Folder its runs start in (`fs_` id).'),
  defaultRepoId: repoUuid.nullable().describe('Repo for cloud runs.'),
  identityMd: agentMdText,
}

/** Settings of an agent's runs, and where they execute. */
export const runtimeFields = {
  model: modelId.nullable().describe('Model; null inherits.'),
  backupModel: modelId.nullable().describe('Model for when the first one fails; null inherits.'),
  reasoningEffort: z.enum(reasoningEfforts).nullable().describe('Reasoning effort; null inherits.'),
  sandboxSize: z.enum(sandboxSizes).nullable().describe('Size of its cloud sandbox; null inherits.'),
  harness: z.enum(harnessNames).nullable().describe('Agent program; null: chosen by the model.'),
  fallbackHarness: z
    .enum(agentPrograms)
    .nullable()
    .describe('Agent program for runs that would wait for their provider; null: they wait.'),
  environment: z.enum(environments).describe('Where its runs execute.'),
  maxTurns: z.number().int().min(1).max(1000).nullable().describe("Most turns of one run; null: the workspace's."),
  monthlyBudgetCents: monthlyBudgetCents.nullable(),
  command: harnessCommand
    .nullable()
    .describe('What the `command` harness runs: a line for the login shell, or an array of arguments.'),
  protocol: z
    .enum(commandProtocols)
    .nullable()
    .describe('How the command is spoken to: `acp` (Agent Client Protocol); null: a plain program.'),
  skillFolders: skillFolders
    .nullable()
    .describe(
      'Folders of skills (`<folder>/<name>/SKILL.md`) on the device: absolute, below `~/`, or below its folder; null: none.',
    ),
}

const createBody = z
  .object({
    name: agentName,
    role: identity.role.default('agent'),
    description: identity.description.optional(),
    ...z.object(runtimeFields).partial().shape,
    environment: runtimeFields.environment.default('device'),
    defaultFolderId: identity.defaultFolderId.optional(),
    defaultRepoId: identity.defaultRepoId.optional(),
    visibility: identity.visibility.default('company'),
    reportingTo: identity.reportingTo.optional(),
    wakeOnAssignment: z.boolean().default(true).describe('Wake when a task is assigned to it.'),
    wakeOnHook: z.boolean().default(true).describe('Wake on a webhook.'),
    toolPermissionMode: z.enum(toolPermissionModes).nullable().optional().describe('How tool calls are permitted.'),
    identityMd: identity.identityMd.optional(),
  })
  .meta({ id: 'AgentCreate' })

const updateBody = z
  .object({
    name: agentName,
    ...identity,
    status: z.enum(agentStatuses).describe('New status.'),
  })
  .partial()
  .meta({ id: 'AgentUpdate' })

/** Keys of the settings, which PATCH refuses: they have a route of their own. */
const settingsKeys = [
  ...Object.keys(runtimeFields),
  'triggers',
  'wakeOnAssignment',
  'wakeOnHook',
  'toolPermissionMode',
  'tools',
  'capabilities',
  'permissions',
  'runtime',
  'config',
]

const identityErrors = [
  'reporting_cycle',
  'handle_taken',
  'folder_requires_device_environment',
  'default_folder_forbidden',
  'default_repo_forbidden',
  'platform_change_requires_run',
] as const

const agentMdFlag = fileFlag('body.identityMd', 'the AGENT.md text')

/** Shorter names of the flags. */
const referenceFlags = {
  'default-folder-id': { aliases: ['folder'] },
  'default-repo-id': { aliases: ['repo'] },
  'reporting-to': { aliases: ['manager'] },
} as const

export const agentRoutes = {
  list: defineRoute({
    id: 'agents.list',
    endpoint: 'GET /agents',
    summary: 'List the agents you can see, newest first, or read several by `ids`',
    query: z.object({
      ids: idsParam,
      q: z.string().max(100).optional().describe('Text in name, handle or description.'),
      status: z
        .array(z.enum([...agentStatuses, 'deleted']))
        .optional()
        .describe('Only these; `deleted` lists deleted agents (people only).'),
      role: z.string().max(100).optional().describe('Only agents with this role.'),
      ...pageParams,
    }),
    reply: listOrBatchOf(agent),
    errors: ['list_deleted_forbidden'],
    cli: { command: 'agent list', example: 'svc agent list --status active' },
  }),

  create: defineRoute({
    id: 'agents.create',
    endpoint: 'POST /agents',
    summary: 'Create an agent',
    ...orApproval,
    body: createBody,
    reply: agentWithAudit,
    status: 201,
    errors: ['resource_not_found', 'repo_not_found', ...identityErrors],
    cli: {
      command: 'agent create',
      flags: {
        role: { default: 'agent' },
        effort: { target: 'body.reasoningEffort' },
        'skill-folder': { target: 'body.skillFolders' },
        mode: { target: 'body.toolPermissionMode' },
        command: { target: 'body.command', kind: 'string', description: 'Command line for the `command` harness.' },
        'command-json': { target: 'body.command', kind: 'json', description: 'The same as a JSON array of arguments.' },
        'agent-md-file': agentMdFlag,
        ...referenceFlags,
      },
      example: 'svc agent create --name Builder --model claude-opus-4-5',
    },
  }),

  get: defineRoute({
    id: 'agents.get',
    endpoint: 'GET /agents/{agentId}',
    summary: 'Read one agent',
    params: agentParams,
    reply: agent,
    cli: {
      command: 'agent get',
      positionals: [{ ...ownAgentPositional, variadic: true }],
      batch: 'agents.list',
      example: 'svc agent get @builder',
    },
  }),

  update: defineRoute({
    id: 'agents.update',
    endpoint: 'PATCH /agents/{agentId}',
    summary: "Change an agent's identity, status, visibility, manager, folder or repo",
    description: 'Settings such as `model` are refused; they are changed with PUT /agents/{agentId}/config.',
    ...orApproval,
    params: agentParams,
    body: updateBody,
    reply: agentWithAudit,
    errors: [
      'invalid_status_transition',
      'config_write_forbidden',
      'identity_write_forbidden',
      'repo_not_found',
      ...identityErrors,
    ],
    refusedBodyKeys: Object.fromEntries(settingsKeys.map((key) => [key, 'config_write_forbidden' as const])),
    cli: {
      command: 'agent update',
      positionals: [agentPositional],
      flags: { 'agent-md-file': agentMdFlag, ...referenceFlags },
      example: 'svc agent update @builder --status running',
    },
  }),
} as const
