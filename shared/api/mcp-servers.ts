import { z } from 'zod'
import { mcpConnectionId, mcpHeaders, mcpLimits, mcpServerName, mcpValue, mcpVariables } from '../runs/mcp-servers.ts'
import { platformChange } from './agents.ts'
import { agentId, agentRef, mcpServerId, timestamp, userPublicId } from './ids.ts'
import { listOf, pageParams } from './paging.ts'
import { defineRoute, orPlatformChange } from './route.ts'

// MCP servers that svc gives to runs: those of the workspace, and those of one agent, which win by their name.

export const mcpTransports = ['http', 'sse', 'stdio'] as const

const fields = {
  name: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/,
      'must be 1 to 64 letters, digits, `-` and `_`, a letter or a digit first',
    )
    .refine((name) => mcpServerName.test(name), 'holds __, or ends with _')
    .describe('By which rules know its tools (`mcp__<name>__<tool>`): letters, digits, - and _.'),
  transport: z
    .enum(mcpTransports)
    .describe('`http`, or `sse` for its older form: a server on the network; `stdio`: a program.'),
  url: mcpValue.min(1).nullable().describe('Address of a server on the network.'),
  headers: mcpHeaders.describe(
    'Headers of each request; `${NAME}` stands for a secret of the agent, which the agent does not see.',
  ),
  connectionId: mcpConnectionId
    .nullable()
    .describe(
      'Connection of an `http` server, whose credential runs use without seeing it. The address is the one that the catalog has for its service, or lies below.',
    ),
  trustSkills: z
    .boolean()
    .describe(
      'Whether agents have the skills that the server offers itself (`skills/*`, `skill:` addresses). For workspace admins to set.',
    ),
  command: mcpValue
    .min(1)
    .nullable()
    .describe('Program of a stdio server; the device starts it in the folder of the run.'),
  args: z.array(mcpValue).max(mcpLimits.args).describe('Arguments of the program.'),
  env: mcpVariables.describe('Variables of the program; `${NAME}` stands for a secret of the agent.'),
}

export const mcpServerShown = z
  .object({
    object: z.literal('mcp_server'),
    id: mcpServerId,
    agentId: agentId.nullable().describe('null: it is the workspace’s.'),
    pluginId: z
      .string()
      .nullable()
      .describe('The plugin that brought it: it is had while that is on, and changed with it.'),
    ...fields,
    createdBy: z.object({ type: z.literal('user'), id: userPublicId }),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'McpServer' })
export type McpServerShown = z.infer<typeof mcpServerShown>

export const mcpToolShown = z
  .object({
    object: z.literal('mcp_tool'),
    name: z.string().describe('As the server has it; rules know it as `mcp__<server>__<name>`.'),
    title: z.string().nullable(),
    description: z.string().nullable(),
    inputSchema: z.record(z.string(), z.unknown()).describe('JSON Schema of the arguments.'),
    annotations: z
      .object({
        readOnlyHint: z.boolean().optional(),
        destructiveHint: z.boolean().optional(),
        idempotentHint: z.boolean().optional(),
        openWorldHint: z.boolean().optional(),
      })
      .describe('What the server says of the tool. Nobody has checked it.'),
  })
  .meta({ id: 'McpTool' })
export type McpTool = z.infer<typeof mcpToolShown>

const params = z.object({ mcpServerId })
const positionals = [
  { name: 'server', target: 'params.mcpServerId', description: 'An MCP server: an id such as mcp_5nQ8vT2kXwB6mZ9r.' },
] as const
const exampleId = 'mcp_5nQ8vT2kXwB6mZ9r'
const changed = { 202: platformChange } as const
const sent = {
  url: fields.url.optional(),
  headers: fields.headers.optional(),
  connectionId: fields.connectionId.optional(),
  trustSkills: fields.trustSkills.optional(),
  command: fields.command.optional(),
  args: fields.args.optional(),
  env: fields.env.optional(),
}
const argsFlag = { args: { aliases: ['arg'] } } as const

export const mcpServerRoutes = {
  list: defineRoute({
    id: 'mcpServers.list',
    endpoint: 'GET /mcp-servers',
    summary: 'List the MCP servers of your workspace and of the agents that you see, newest first',
    query: z.object({
      agentId: agentRef.optional().describe('Only those of this agent: `agt_` id, @handle or name.'),
      ...pageParams,
    }),
    reply: listOf(mcpServerShown),
    cli: {
      command: 'mcp list',
      flags: { agent: { target: 'query.agentId' } },
      example: 'svc mcp list --agent @builder',
    },
  }),

  create: defineRoute({
    id: 'mcpServers.create',
    endpoint: 'POST /mcp-servers',
    summary: 'Give an MCP server to all runs, or to those of one agent',
    description:
      'Those of the workspace are for workspace admins, those of an agent for its owner, too. What an agent asks for waits for a person.',
    callers: orPlatformChange,
    body: z
      .object({
        name: fields.name,
        transport: fields.transport.default('http'),
        ...sent,
        agentId: agentRef
          .optional()
          .describe('The agent whose runs alone have it. Default: all runs of the workspace.'),
      })
      .meta({ id: 'McpServerCreate' }),
    reply: mcpServerShown,
    status: 201,
    otherReplies: changed,
    errors: ['agent_not_found', 'agent_self_only', 'connection_not_found', 'platform_change_requires_run'],
    cli: {
      command: 'mcp create',
      flags: { agent: { target: 'body.agentId' }, ...argsFlag },
      example:
        'svc mcp create --name tracker --url https://mcp.example.com --headers \'{"Authorization": "Bearer ${TRACKER_TOKEN}"}\'',
    },
  }),

  get: defineRoute({
    id: 'mcpServers.get',
    endpoint: 'GET /mcp-servers/{mcpServerId}',
    summary: 'Read one MCP server',
    params,
    reply: mcpServerShown,
    errors: ['mcp_server_not_found'],
    cli: { command: 'mcp get', positionals, example: `svc mcp get ${exampleId}` },
  }),

  tools: defineRoute({
    id: 'mcpServers.tools',
    endpoint: 'GET /mcp-servers/{mcpServerId}/tools',
    summary: 'List the tools that an MCP server on the network has now',
    description:
      'This server asks it, with the credential of its connection where you may use that. Values that name secrets are filled in for workspace admins.',
    params,
    reply: listOf(mcpToolShown),
    errors: [
      'mcp_server_not_found',
      'mcp_server_not_asked',
      'mcp_values_of_runs',
      'mcp_sign_in_needed',
      'mcp_server_unreadable',
    ],
    cli: { command: 'mcp tools', positionals, example: `svc mcp tools ${exampleId}` },
  }),

  update: defineRoute({
    id: 'mcpServers.update',
    endpoint: 'PATCH /mcp-servers/{mcpServerId}',
    summary: 'Change an MCP server; its next runs have it so',
    callers: orPlatformChange,
    params,
    body: z.strictObject({ name: fields.name.optional(), ...sent }).meta({ id: 'McpServerUpdate' }),
    reply: mcpServerShown,
    otherReplies: changed,
    errors: ['mcp_server_not_found', 'mcp_server_of_plugin', 'connection_not_found', 'platform_change_requires_run'],
    cli: {
      command: 'mcp update',
      positionals,
      flags: argsFlag,
      example: `svc mcp update ${exampleId} --url https://mcp.example.com/v2`,
    },
  }),

  delete: defineRoute({
    id: 'mcpServers.delete',
    endpoint: 'DELETE /mcp-servers/{mcpServerId}',
    summary: 'Delete an MCP server; its next runs do not have it',
    callers: orPlatformChange,
    params,
    otherReplies: changed,
    errors: ['mcp_server_not_found', 'mcp_server_of_plugin', 'platform_change_requires_run'],
    cli: { command: 'mcp delete', asks: true, positionals, example: `svc mcp delete ${exampleId}` },
  }),
} as const
