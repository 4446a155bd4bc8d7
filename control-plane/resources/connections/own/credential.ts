import type { ConnectionId } from '../../../../shared/lib/ids.ts'
import { z } from 'zod'
import { fieldsIn, type Service } from '../../../catalog/services.ts'
import type { Vault } from '../../../vault/vault.ts'
import type { KeyFields } from '../rules.ts'

/** The sources that say that a client is this server's at an issuer. `document`: the address of the document is its id. */
export const clientSources = ['operator', 'person', 'document', 'registration'] as const
export type ClientSource = (typeof clientSources)[number]

/** The findings about an MCP server whose people sign in by OAuth: it names its provider itself. */
const mcpProvider = z.object({
  /** The address of the server that was signed in to. A server at another one gets nothing. */
  serverUrl: z.string(),
  authorizeUrl: z.string(),
  revokeUrl: z.string().optional(),
  clientSource: z.enum(clientSources),
  clientAuth: z.enum(['basic', 'post']).optional(),
  resource: z.string().optional(),
})

/**
 * The credential of a connection. It is sealed for its row alone, and opened only to be sent to its service or to the device of a run: it
 * stands in no answer, log, event or error.
 */
const credential = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('fields'), values: z.record(z.string(), z.string()) }),
  z.object({
    kind: z.literal('oauth'),
    /** The provider that gave it: it goes to nobody else. */
    issuer: z.string(),
    tokenUrl: z.string(),
    clientId: z.string(),
    accessToken: z.string(),
    refreshToken: z.string().nullable(),
    obtainedAt: z.number(),
    expiresAt: z.number().nullable(),
    /** Left out: the catalog knows the provider. */
    mcp: mcpProvider.optional(),
  }),
])
export type Credential = z.infer<typeof credential>
export type OauthCredential = Extract<Credential, { kind: 'oauth' }>

const boundTo = (connectionId: ConnectionId) => `${connectionId}:credential`

export const sealCredential = (vault: Pick<Vault, 'seal'>, connectionId: ConnectionId, held: Credential): Buffer =>
  vault.seal(boundTo(connectionId), JSON.stringify(held))

/** Throws `VaultError` when it was sealed with another key, or for another row. */
export const openCredential = (vault: Pick<Vault, 'open'>, connectionId: ConnectionId, sealed: Buffer): Credential =>
  credential.parse(JSON.parse(vault.open(boundTo(connectionId), sealed)))

const attempt = z.object({
  state: z.string(),
  codeVerifier: z.string(),
  redirectUri: z.string(),
  issuer: z.string(),
  /** The provider and client of a sign-in to an MCP server; left out: the catalog knows the provider. */
  mcp: mcpProvider
    .extend({
      tokenUrl: z.string(),
      saysIssuer: z.boolean(),
      scopes: z.array(z.string()),
      clientId: z.string(),
      clientSecret: z.string().optional(),
      secretExpiresAt: z.number().nullable(),
    })
    .optional(),
})
/** The facts that the exchange of a code needs beside the code. */
export type SignInAttempt = z.infer<typeof attempt>

const ofSignIn = (connectionId: ConnectionId) => `${connectionId}:sign-in`

export const sealAttempt = (vault: Pick<Vault, 'seal'>, connectionId: ConnectionId, begun: SignInAttempt): Buffer =>
  vault.seal(ofSignIn(connectionId), JSON.stringify(begun))

export const openAttempt = (vault: Pick<Vault, 'open'>, connectionId: ConnectionId, sealed: Buffer): SignInAttempt =>
  attempt.parse(JSON.parse(vault.open(ofSignIn(connectionId), sealed)))

/** The fields of the credential that are held, as clients see them. */
export const fieldNamesOf = (held: Credential): string[] =>
  held.kind === 'fields'
    ? Object.keys(held.values)
    : ['accessToken', ...(held.refreshToken === null ? [] : ['refreshToken'])]

/** The templates with the values of the fields in them; a header with a field that is not held is left out. */
export function filledHeaders(templates: Readonly<Record<string, string>>, values: KeyFields): Record<string, string> {
  const held = Object.entries(templates).filter(([, template]) =>
    fieldsIn(template).every((name) => Object.hasOwn(values, name)),
  )
  return Object.fromEntries(
    held.map(([header, template]) => [header, template.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name]!)]),
  )
}

/** The parts of a credential that a run is given: headers of requests to the service, and variables of its environment. */
export interface Delivered {
  headers: Record<string, string>
  env: Record<string, string>
  /** The secrets in the headers. */
  values: string[]
}

/** Names of the variables that a run gets of a credential with these fields. */
export function variablesOf(
  { surfaces, fields = [], oauth }: Pick<Service, 'surfaces' | 'fields' | 'oauth'>,
  fieldNames: readonly string[],
): string[] {
  if (!surfaces.includes('native')) return []
  const ofFields = fields.flatMap(({ name, env }) => (env !== undefined && fieldNames.includes(name) ? [env] : []))
  return oauth?.env !== undefined && fieldNames.includes('accessToken') ? [...ofFields, oauth.env] : ofFields
}

export function deliveredOf(service: Service, held: Credential): Delivered {
  const { surfaces, mcp, probe, fields = [], oauth } = service
  const isNative = surfaces.includes('native')
  if (held.kind === 'oauth') {
    const env = isNative && oauth?.env !== undefined ? { [oauth.env]: held.accessToken } : {}
    if (!surfaces.includes('mcp')) return { headers: {}, env, values: [] }
    return { headers: { authorization: `Bearer ${held.accessToken}` }, env, values: [held.accessToken] }
  }
  const [first] = fields
  const byDefault = first === undefined ? {} : { authorization: `Bearer {${first.name}}` }
  const templates = mcp?.headers ?? probe?.headers ?? byDefault
  const named = fields.flatMap(({ name, env }) =>
    env !== undefined && Object.hasOwn(held.values, name) ? [[env, held.values[name]!] as const] : [],
  )
  const sent = new Set(Object.values(templates).flatMap(fieldsIn))
  return {
    values: Object.entries(held.values).flatMap(([name, value]) => (sent.has(name) ? [value] : [])),
    headers: surfaces.includes('mcp') ? filledHeaders(templates, held.values) : {},
    env: isNative ? Object.fromEntries(named) : {},
  }
}
