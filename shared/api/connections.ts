import { z } from 'zod'
import {
  apiKeyFields,
  catalogService,
  connection,
  connectionLimits,
  connectionOwnerTypes,
  connectionSetup,
  connectionSorts,
  connectionStatuses,
  connectionSummary,
} from './connection-fields.ts'
import { listOf, pageParams } from './paging.ts'
import { defineRoute } from './route.ts'

// Connections: the sign-ins to outside services whose tools agents use without seeing the token.

const connectionRef = z
  .string()
  .min(1)
  .max(200)
  .meta({ description: 'A connection: `conn_` id.', example: 'conn_4hJ8kL2mQ6xT9vB3' })
const params = z.object({ id: connectionRef })
const positionals = [{ name: 'connection', target: 'params.id' }] as const
const exampleId = 'conn_4hJ8kL2mQ6xT9vB3'
const byPeople = { person: 'member', agent: { refused: 'connection_owner_mismatch' } } as const
const setupErrors = [
  'connection_owner_mismatch',
  'api_key_invalid',
  'oauth_exchange_failed',
  'unsupported_auth_kind',
] as const
/** The answer may hold the address of a sign-in, which is the right to end it. */
const setup = { callers: byPeople, reply: connectionSetup, isSecret: true } as const
const keyFlag = {
  target: null,
  kind: 'string',
  description:
    'The fields of the key as JSON; `@FILE` reads a file, `@-` standard input, which other users do not see.',
} as const

const clientFlagText =
  'An OAuth client that you registered, as JSON: `clientId` and perhaps `clientSecret`; `@FILE` reads a file, `@-` standard input, which other users do not see.'

export const connectionRoutes = {
  catalog: defineRoute({
    id: 'connections.catalog',
    endpoint: 'GET /connections/catalog',
    summary: 'List the services that there are to connect to',
    reply: listOf(catalogService),
    cli: { command: 'connection services', example: 'svc connection services' },
  }),

  list: defineRoute({
    id: 'connections.list',
    endpoint: 'GET /connections',
    summary: 'List the connections that you see: those of the workspace and your own',
    query: z.object({
      integration: z.string().min(1).max(200).optional().describe('Only those to this service.'),
      status: z.enum(connectionStatuses).optional().describe('Only those in this state.'),
      q: z.string().max(200).optional().describe('Text in the label of the service or of the account.'),
      sort: z.enum(connectionSorts).default('created_desc').describe('The order of the rows.'),
      ...pageParams,
    }),
    reply: listOf(connectionSummary).extend({
      returnedCount: z.number().int(),
      totalCount: z.number().int().describe('All that the filters let through.'),
    }),
    cli: { command: 'connection list', example: 'svc connection list --status expired' },
  }),

  create: defineRoute({
    id: 'connections.create',
    endpoint: 'POST /connections',
    summary: 'Connect to a service, or say what a person must do for it',
    description:
      'An active connection to the same service with the same label of the account is answered as it is. One that is expired or revoked is made active again, or its sign-in begins anew. A service is one of the catalog, or `mcp-server:<id>`: an MCP server, whose runs have the connection once somebody has signed in.',
    ...setup,
    body: z
      .object({
        integrationId: z
          .string()
          .min(1)
          .max(200)
          .optional()
          .describe('The service: its id in the catalog, or `mcp-server:<id>`.'),
        integration: z.string().min(1).max(200).optional().describe('Another name for `integrationId`.'),
        ownerType: z.enum(connectionOwnerTypes).describe('Required, and not used: it is the workspace that has it.'),
        accountLabel: z
          .string()
          .trim()
          .max(connectionLimits.accountLabel)
          .default('')
          .describe('Tells accounts at one service apart.'),
        apiKeyFields: apiKeyFields.optional(),
      })
      .refine(
        ({ integrationId, integration }) =>
          (integrationId ?? integration) !== undefined &&
          (integrationId === undefined || integration === undefined || integrationId === integration),
        { path: ['integrationId'], message: 'one service must be named' },
      )
      .meta({ id: 'ConnectionCreate' }),
    errors: ['integration_not_found', ...setupErrors],
    cli: [
      {
        command: 'connection create',
        flags: {
          'integration-id': { target: 'body.integrationId', required: true },
          integration: null,
          'api-key-fields': keyFlag,
        },
        flow: true,
        example: 'svc connection create --integration-id deepwiki --owner-type company',
      },
      {
        command: 'mcp sign-in',
        positionals: [{ name: 'server', target: null, description: 'MCP server with the transport http: `mcp_` id.' }],
        flags: {
          'integration-id': null,
          integration: null,
          'owner-type': null,
          'api-key-fields': { ...keyFlag, description: clientFlagText },
        },
        flow: true,
        example: 'svc mcp sign-in mcp_5nQ8vT2kXwB6mZ9r',
      },
    ],
  }),

  get: defineRoute({
    id: 'connections.get',
    endpoint: 'GET /connections/{id}',
    summary: 'Read one connection, never its credential',
    params,
    reply: connection,
    errors: ['connection_not_found'],
    cli: { command: 'connection get', positionals, example: `svc connection get ${exampleId}` },
  }),

  revoke: defineRoute({
    id: 'connections.revoke',
    endpoint: 'POST /connections/{id}/revoke',
    summary: 'Withdraw a connection at its provider and forget its credential; one that is pending is deleted',
    params,
    query: z.object({
      local: z
        .boolean()
        .default(false)
        .describe('Forget the credential without asking the provider, where it may stay valid.'),
    }),
    errors: ['connection_not_found', 'connection_not_revokable'],
    cli: { command: 'connection revoke', asks: true, positionals, example: `svc connection revoke ${exampleId}` },
  }),

  reauthorize: defineRoute({
    id: 'connections.reauthorize',
    endpoint: 'POST /connections/{id}/reauthorize',
    summary: 'Make a connection work again that is expired or revoked',
    ...setup,
    params,
    body: z.strictObject({ apiKeyFields: apiKeyFields.optional() }).meta({ id: 'ConnectionReauthorize' }),
    errors: ['connection_not_found', 'connection_not_reauthorizable', ...setupErrors],
    cli: {
      command: 'connection reauthorize',
      positionals,
      flags: { 'api-key-fields': keyFlag },
      flow: true,
      example: `svc connection reauthorize ${exampleId}`,
    },
  }),
} as const
