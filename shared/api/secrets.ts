import { z } from 'zod'
import { steersPrograms } from '../lib/env-names.ts'
import { brokerHost } from './host-names.ts'
import { agentId, agentRef, secretId, timestamp, userPublicId, workspaceUuid } from './ids.ts'
import { listOf, pageParams } from './paging.ts'
import { defineRoute, peopleOnly, adminsOnly } from './route.ts'

// Secrets: values that are stored encrypted and given to agents as environment variables of their runs.

export const secretFields = {
  name: z.string().trim().min(1).max(100).describe('Name, unique in the workspace.'),
  provider: z.string().trim().min(1).max(100).describe('The service it is for, for example `github`.'),
  envVarName: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/, 'must be 1 to 100 letters, digits and underscores, no digit first')
    .refine((name) => !steersPrograms(name), 'is reserved: it changes what programs do')
    .describe('Variable under which agents get it.'),
  value: z
    .string()
    .min(1)
    .max(10_000)
    .refine((value) => !value.includes('\0'), 'holds NUL')
    .describe('The value, 1 to 10,000 characters; only reveal ever shows it again.'),
}

/** The settings by which the runs of cloud sandboxes get a secret. */
const cloudFields = {
  brokerHosts: z
    .array(brokerHost)
    .max(20)
    .nullable()
    .transform((hosts) => [...new Set((hosts ?? []).map((host) => host.replace(/:443$/, '')))])
    .describe(
      'Hosts, such as `api.example.com`, towards which the broker of a cloud sandbox puts the value in place of a placeholder; none: it is of no use there.',
    ),
  cloudPlain: z
    .boolean()
    .describe('Whether cloud sandboxes get the value itself, as devices do (only workspace admins change it).'),
}

export const secret = z
  .object({
    object: z.literal('secret'),
    id: secretId,
    workspaceId: workspaceUuid,
    name: z.string(),
    provider: z.string().nullable(),
    envVarName: z.string(),
    grantedTo: z.array(z.object({ type: z.literal('agent'), id: agentId })),
    createdBy: z.object({ type: z.literal('user'), id: userPublicId }),
    brokerHosts: z.array(z.string()),
    cloudPlain: z.boolean(),
    lastRevealedBy: z.object({ type: z.literal('user'), id: userPublicId }).nullable(),
    lastRevealedAt: timestamp.nullable(),
    createdAt: timestamp,
  })
  .meta({ id: 'Secret' })
export type Secret = z.infer<typeof secret>

const params = z.object({ secretId })
const positionals = [{ name: 'secret', target: 'params.secretId' }] as const
const exampleId = 'sec_7kP2nV5xQbD8rM1c'

export const secretRoutes = {
  list: defineRoute({
    id: 'secrets.list',
    endpoint: 'GET /secrets',
    summary: 'List the secrets of the workspace, without their values',
    callers: peopleOnly,
    query: z.object(pageParams),
    reply: listOf(secret),
    cli: { command: 'secret list', example: 'svc secret list' },
  }),

  create: defineRoute({
    id: 'secrets.create',
    endpoint: 'POST /secrets',
    summary: 'Store a secret; the command reads its value from standard input',
    callers: peopleOnly,
    // The stored answer would hold no value, but the key's record would hold a hash of it.
    idempotency: 'none',
    body: z
      .object({
        name: secretFields.name,
        value: secretFields.value,
        provider: secretFields.provider.nullable().optional(),
        envVarName: secretFields.envVarName.optional(),
        agentId: agentRef.optional().describe('An agent to grant it to at once.'),
        brokerHosts: cloudFields.brokerHosts.optional(),
        cloudPlain: cloudFields.cloudPlain.optional(),
      })
      .meta({ id: 'SecretCreate' }),
    reply: secret,
    status: 201,
    errors: ['secret.duplicate_name', 'agent_not_found'],
    cli: {
      command: 'secret create',
      flags: { value: null, 'env-var-name': { aliases: ['env'] }, agent: { target: 'body.agentId' } },
      flow: true,
      example: 'svc secret create --name deploy-key --env DEPLOY_KEY --agent @builder < key.txt',
    },
  }),

  update: defineRoute({
    id: 'secrets.update',
    endpoint: 'PATCH /secrets/{secretId}',
    summary: 'Change how cloud sandboxes get a secret (who stored it, and workspace admins)',
    callers: peopleOnly,
    params,
    body: z.strictObject(cloudFields).partial().meta({ id: 'SecretUpdate' }),
    reply: secret,
    errors: ['secret_not_found'],
    cli: {
      command: 'secret update',
      positionals,
      example: `svc secret update ${exampleId} --broker-hosts api.example.com`,
    },
  }),

  reveal: defineRoute({
    id: 'secrets.reveal',
    endpoint: 'POST /secrets/{secretId}/reveal',
    summary: 'Show the value of a secret (workspace admins); the server records who did',
    callers: adminsOnly,
    // The value must not be stored as the answer of a key.
    idempotency: 'none',
    params,
    reply: z.object({ object: z.literal('secret_value'), id: secretId, name: z.string(), value: z.string() }),
    errors: ['secret_not_found'],
    cli: {
      command: 'secret reveal',
      positionals,
      print: { stdout: 'value' },
      example: `svc secret reveal ${exampleId}`,
    },
  }),

  grant: defineRoute({
    id: 'secrets.grant',
    endpoint: 'POST /secrets/{secretId}/grants',
    summary: 'Give a secret to an agent: its next runs have it in their environment',
    description: 'For whoever stored the secret and owns the agent, and for workspace admins.',
    callers: peopleOnly,
    params,
    body: z.object({ agentId: agentRef }),
    reply: secret,
    errors: ['secret_not_found', 'agent_not_found'],
    cli: {
      command: 'secret grant',
      positionals,
      flags: { agent: { target: 'body.agentId' } },
      example: `svc secret grant ${exampleId} --agent @builder`,
    },
  }),

  revokeGrant: defineRoute({
    id: 'secrets.grants.revoke',
    endpoint: 'DELETE /secrets/{secretId}/grants/{agentId}',
    summary: 'Take a secret from an agent: its next runs do not have it any more',
    callers: peopleOnly,
    params: z.object({ secretId, agentId: agentRef }),
    errors: ['secret_not_found', 'agent_not_found'],
    cli: {
      command: 'secret revoke-grant',
      positionals,
      flags: { agent: { target: 'params.agentId' } },
      example: `svc secret revoke-grant ${exampleId} --agent @builder`,
    },
  }),

  delete: defineRoute({
    id: 'secrets.delete',
    endpoint: 'DELETE /secrets/{secretId}',
    summary: 'Delete a secret and all its grants',
    callers: peopleOnly,
    params,
    errors: ['secret_not_found'],
    cli: { command: 'secret delete', asks: true, positionals, example: `svc secret delete ${exampleId}` },
  }),
} as const
