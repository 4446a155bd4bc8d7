import { z } from 'zod'
import { connectionId, timestamp } from './ids.ts'

// Connections and the services that there are, as clients see them.

export const authKinds = ['none', 'api_key', 'oauth', 'mcp_oauth'] as const
export const connectionSurfaces = ['mcp', 'native'] as const
export const connectionOwnerTypes = ['company', 'user'] as const
export const connectionStatuses = ['pending', 'active', 'expired', 'revoked'] as const
export type ConnectionStatus = (typeof connectionStatuses)[number]
export const connectionSorts = ['last_used_desc', 'last_used_asc', 'created_desc', 'created_asc', 'label_asc'] as const
export type ConnectionSort = (typeof connectionSorts)[number]

export const connectionLimits = {
  accountLabel: 200,
  /** Characters of one field of a key. A key has at most `fields` of them. */
  fieldValue: 8_192,
  fields: 20,
  /** The time that a person has to finish a sign-in. */
  signInMs: 10 * 60_000,
} as const

/** The path on this server to which providers send the browser back. */
export const connectionCallbackPath = '/integrations/connections/callback'

/** The metadata document of this server as an OAuth client, whose address is its id where it is public. */
export const connectionClientPath = '/integrations/connections/client.json'

/** The beginning of the id of a service that is a server of `/mcp-servers`; its id follows. */
export const mcpServerIntegration = 'mcp-server:'

const integration = z
  .object({
    id: z.string().describe('Id in the catalog, or `mcp-server:<id>`.'),
    label: z.string(),
    authKind: z.enum(authKinds),
  })
  .meta({ id: 'Integration' })

export const connectionSummary = z
  .object({
    object: z.literal('connection'),
    id: connectionId,
    integration,
    owner: z
      .object({
        type: z.enum(connectionOwnerTypes).describe('`company`: the workspace uses it.'),
        id: z.string().describe('Slug of the workspace, or id of the person.'),
        label: z.string(),
      })
      .meta({ id: 'ConnectionOwner' }),
    accountLabel: z.string(),
    status: z.enum(connectionStatuses),
    statusReason: z.string().nullable().describe('Why it is expired or revoked, in a sentence.'),
    grantedScopes: z.array(z.string()),
    lastUsedAt: timestamp.nullable(),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'ConnectionSummary' })
export type ConnectionSummary = z.infer<typeof connectionSummary>

export const connection = connectionSummary
  .extend({
    auth: z.object({
      kind: z.enum(authKinds),
      expiresAt: timestamp
        .nullable()
        .describe('When the access token ends; it is renewed before that where it can be.'),
      fieldNames: z.array(z.string()).describe('The fields of the credential that are held, never their values.'),
    }),
    availableSurfaces: z.array(z.enum(connectionSurfaces)),
    runtimeDelivery: z.object({ local: z.literal('device_injection'), cloud: z.literal('network_broker') }),
  })
  .meta({ id: 'Connection' })
export type Connection = z.infer<typeof connection>

const shownField = z.object({ name: z.string(), label: z.string(), required: z.boolean() })

export const connectionSetup = z
  .object({
    object: z.literal('connection_setup_result'),
    status: z.enum(['connected', 'human_required']),
    nextStep: z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('none') }),
      z.object({
        kind: z.literal('oauth_redirect'),
        authorizeUrl: z.string().describe('Open it in a browser within ten minutes, and approve.'),
      }),
      z.object({
        kind: z.literal('api_key_fields'),
        fields: z
          .array(shownField)
          .describe(
            'Send these as `apiKeyFields`: of the key, or of an OAuth client that you register at the provider.',
          ),
      }),
    ]),
    connection: connectionSummary.optional().describe('Left out while there is none.'),
  })
  .meta({ id: 'ConnectionSetupResult' })
export type ConnectionSetup = z.infer<typeof connectionSetup>

export const catalogService = z
  .object({
    object: z.literal('service'),
    id: z.string(),
    label: z.string(),
    description: z.string().nullable(),
    authKind: z.enum(authKinds),
    adminOnly: z.boolean().describe('Workspace admins alone connect to it.'),
    surfaces: z.array(z.enum(connectionSurfaces)),
    scopes: z.array(z.string()),
    fields: z.array(shownField),
    isReady: z.boolean().describe('False: it needs an OAuth client of the operator, and there is none.'),
  })
  .meta({ id: 'CatalogService' })
export type CatalogService = z.infer<typeof catalogService>

export const apiKeyFields = z
  .record(z.string().min(1).max(100), z.string().max(connectionLimits.fieldValue))
  .refine((fields) => Object.keys(fields).length <= connectionLimits.fields, `more than ${connectionLimits.fields}`)
  .describe('The fields of the key by their names, as the catalog lists them.')
