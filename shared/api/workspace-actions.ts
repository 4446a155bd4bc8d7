import { z } from 'zod'
import { toolPermissionModes } from '../runs/spec.ts'
import { defineRoute, adminsOnly } from './route.ts'
import { companyConfig, maxTurns, workspace, workspaceFlag, workspaceParams } from './workspaces.ts'

// Actions on a workspace as a whole, and its company.

const byAdmins = { callers: adminsOnly, params: workspaceParams } as const
const ownersOnly = { person: 'owner', agent: { refused: 'http_exception' } } as const

/** An action without a body that answers the workspace. */
const action = (name: string, verb: string, summary: string) =>
  defineRoute({
    id: `workspaces.${name}`,
    endpoint: `POST /workspaces/{workspaceId}/${verb}` as const,
    aliases: { [`/companies/{workspaceId}/${verb}`]: `companies.${name}` },
    summary,
    ...byAdmins,
    reply: workspace,
    cli: { command: `workspace ${verb}`, flags: workspaceFlag, example: `svc workspace ${verb}` },
  })

export const workspaceActionRoutes = {
  pauseAgents: action(
    'pauseAgents',
    'pause-agents',
    'Pause all agents: none starts a run, and runs that wait are cancelled; running ones go on',
  ),
  resumeAgents: action('resumeAgents', 'resume-agents', 'Let agents start runs again'),
  archive: action(
    'archive',
    'archive',
    'Archive a workspace for good: no agent starts a run in it any more, and runs that wait are cancelled',
  ),

  export: defineRoute({
    id: 'workspaces.export',
    endpoint: 'POST /workspaces/{workspaceId}/export',
    aliases: { '/companies/{workspaceId}/export': 'companies.export' },
    summary: 'Get the agents, tasks and projects of a workspace as a Markdown manifest',
    ...byAdmins,
    transaction: false,
    stream: 'text',
    reply: z.object({ manifest: z.string().describe('Markdown.') }).meta({ id: 'WorkspaceExport' }),
    cli: {
      command: 'workspace export',
      flags: workspaceFlag,
      print: { stdout: 'manifest' },
      example: 'svc workspace export > workspace.md',
    },
  }),

  delete: defineRoute({
    id: 'workspaces.delete',
    endpoint: 'DELETE /workspaces/{workspaceId}',
    aliases: { '/companies/{workspaceId}': 'companies.delete' },
    summary: 'Delete a workspace with everything in it; nothing brings it back',
    description:
      "Live runs end, devices and tokens stop working. With a company's last workspace the company goes too.",
    callers: ownersOnly,
    params: workspaceParams,
    body: z
      .object({ confirmName: z.string().max(200).describe('The name of the workspace, to be sure.') })
      .meta({ id: 'WorkspaceDelete' }),
    reply: z
      .object({
        billing: z.object({
          companyDeleted: z.boolean().describe('It was the last workspace of its company.'),
          subscriptionCancelled: z.boolean().describe('The company had a subscription, and it was cancelled.'),
        }),
      })
      .meta({ id: 'WorkspaceDeleted' }),
    cli: {
      command: 'workspace delete',
      asks: true,
      flags: workspaceFlag,
      example: 'svc workspace delete --confirm-name "Acme"',
    },
  }),

  updateCompany: defineRoute({
    id: 'workspaces.company.update',
    endpoint: 'PATCH /workspaces/{workspaceId}/company',
    aliases: { '/companies/{workspaceId}/company': 'companies.company.update' },
    summary: 'Rename the company of a workspace',
    ...byAdmins,
    body: z
      .object({ name: z.string().trim().min(1).max(100).describe('Name of the company.') })
      .meta({ id: 'CompanyUpdate' }),
    reply: z.object({ id: z.string(), name: z.string() }).meta({ id: 'Company' }),
    cli: {
      command: 'company rename',
      positionals: [{ name: 'name', target: 'body.name' }],
      flags: workspaceFlag,
      example: 'svc company rename "Acme Inc."',
    },
  }),

  companyConfig: defineRoute({
    id: 'workspaces.companyConfig.get',
    endpoint: 'GET /companies/{workspaceId}/company-config',
    aliases: { '/workspaces/{workspaceId}/company-config': 'workspaces.config.get' },
    summary: 'Read the security defaults of runs',
    params: workspaceParams,
    reply: companyConfig,
    cli: { command: 'company config get', flags: workspaceFlag, example: 'svc company config get' },
  }),

  updateCompanyConfig: defineRoute({
    id: 'workspaces.companyConfig.update',
    endpoint: 'PATCH /companies/{workspaceId}/company-config',
    aliases: { '/workspaces/{workspaceId}/company-config': 'workspaces.config.update' },
    summary: 'Change the security defaults of runs',
    ...byAdmins,
    body: z
      .object({
        toolPermissionDefault: z
          .enum(toolPermissionModes)
          .nullable()
          .describe('How tool calls are permitted when the agent sets no mode of its own.'),
        maxTurns: maxTurns.nullable().describe('Most turns of a run whose agent sets no limit; null: no cap.'),
      })
      .partial()
      .meta({ id: 'CompanyConfigUpdate' }),
    reply: companyConfig,
    cli: {
      command: 'company config set',
      flags: { mode: { target: 'body.toolPermissionDefault' }, ...workspaceFlag },
      example: 'svc company config set --mode ask',
    },
  }),
} as const
