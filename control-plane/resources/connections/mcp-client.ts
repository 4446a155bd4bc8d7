import type { WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { connectionClientPath } from '../../../shared/api/connection-fields.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { ServiceCatalog } from '../../catalog/services.ts'
import type { Db } from '../../db/open.ts'
import { OutboundError } from '../../outbound/outbound-error.ts'
import type { Outbound } from '../../outbound/outbound.ts'
import type { Vault } from '../../vault/vault.ts'
import { findNewestConnectionClient, type ConnectionClientRow } from './own/client-store.ts'
import type { ClientSource } from './own/credential.ts'
import { DiscoveryFetch, providerTroubleOf, type FoundIssuer } from './own/mcp-discovery.ts'
import { ProviderTrouble } from './own/oauth.ts'
import type { KeyFields } from './rules.ts'

/** The client as which this server has people sign in at the issuer of an MCP server. */
export interface ChosenClient {
  source: ClientSource
  clientId: string
  clientSecret: string | undefined
  clientAuth: 'basic' | 'post' | undefined
  /** null: never. */
  secretExpiresAt: number | null
}

/**
 * The fields that a person is asked for where the issuer gives no client by itself. The server may name another issuer when they have
 * registered one: with `issuer` the client goes to no other than the one that they were told.
 */
export const clientFields = (issuer = 'the authorization server') => [
  { name: 'clientId', label: `OAuth client id at ${issuer}`, required: true, pattern: '^[\\x21-\\x7e]{1,1000}$' },
  { name: 'clientSecret', label: 'OAuth client secret, unless the client is public', required: false },
  { name: 'issuer', label: `${issuer}, so that the client is shown to no other`, required: false },
]

export interface ClientDependencies {
  root: Db
  world: Pick<World, 'now' | 'monotonic'>
  vault: Pick<Vault, 'open'>
  services: Pick<ServiceCatalog, 'clientAt'>
  outbound: Pick<Outbound, 'fetch' | 'resolve'>
  publicUrl: () => string
}

interface ClientWanted {
  workspaceId: WorkspaceUuid
  serviceId: string
  found: FoundIssuer
  redirectUri: string
  /** A client that a person has registered; null: nobody sent one. */
  given: KeyFields | null
  /** The sign-in before has not come to an end: the issuer may know the registered client no more. */
  isAgain: boolean
}

/**
 * The first of: the one that a person sends, the operator's, one that a person sent before, the metadata document, a registered one.
 * null: a person is to be asked. Fails with ProviderTrouble.
 */
export async function chooseClient(deps: ClientDependencies, wanted: ClientWanted): Promise<ChosenClient | null> {
  const { found, given, workspaceId, redirectUri } = wanted
  const { issuer, authMethods } = found
  const now = deps.world.now()
  const shown = (source: ClientSource, clientId: string, clientSecret?: string) => ({
    source,
    clientId,
    clientSecret,
    clientAuth: authOf(clientSecret, authMethods),
    secretExpiresAt: null,
  })
  if (given !== null) {
    const { clientId = '', clientSecret, issuer: meant = issuer } = given
    if (meant !== issuer)
      throw new ProviderTrouble(`The MCP server has people sign in at ${issuer}, and the client is of ${meant}.`)
    return shown('person', clientId, clientSecret)
  }
  const ofOperator = deps.services.clientAt(issuer, wanted.serviceId)
  if (ofOperator !== null) return shown('operator', ofOperator.clientId, ofOperator.clientSecret)
  const stored = async (source: 'person' | 'registration') => {
    const row = await findNewestConnectionClient(deps.root, { workspaceId, issuer, source, redirectUri, now })
    return row && asChosen(row, deps)
  }
  const ofPerson = await stored('person')
  if (ofPerson !== null) return ofPerson
  // The id is the same at all issuers. A code of another one must not pass for one of this issuer.
  const isKnownByCodes = found.takesDocuments && found.saysIssuer
  if (isKnownByCodes && (await isPublic(deps))) return shown('document', clientDocumentUrl(deps.publicUrl()))
  const registered = wanted.isAgain ? null : await stored('registration')
  return registered ?? (found.registerUrl === undefined ? null : register(deps, wanted))
}

function asChosen(row: ConnectionClientRow, { vault }: Pick<ClientDependencies, 'vault'>): ChosenClient {
  const { source, clientId, clientAuth, secretExpiresAt } = row
  const clientSecret = openClientSecret(vault, row)
  return { source, clientId, clientSecret, clientAuth: clientAuth ?? undefined, secretExpiresAt }
}

const boundTo = (clientRowId: string) => `${clientRowId}:client`

export const sealClientSecret = (vault: Pick<Vault, 'seal'>, rowId: string, secret: string): Buffer =>
  vault.seal(boundTo(rowId), secret)

export const openClientSecret = (vault: Pick<Vault, 'open'>, { id, clientSecret }: ConnectionClientRow) =>
  clientSecret === null ? undefined : vault.open(boundTo(id), clientSecret)

/** RFC 7591 has Basic where nothing is said. */
function authOf(secret: string | undefined, methods: readonly string[]): 'basic' | 'post' | undefined {
  if (secret === undefined) return undefined
  return methods.includes('client_secret_post') && !methods.includes('client_secret_basic') ? 'post' : 'basic'
}

export const clientDocumentUrl = (publicUrl: string): string => publicUrl + connectionClientPath

/** Returns what this server says of itself as a client: in its document, and when it registers. */
export const clientMetadata = (publicUrl: string, redirectUri: string) => ({
  client_name: 'svc',
  redirect_uris: [redirectUri],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  ...(publicUrl.startsWith('https:') && { client_uri: publicUrl }),
})

/** Returns whether issuers anywhere can read the document. */
async function isPublic({ publicUrl, outbound }: ClientDependencies): Promise<boolean> {
  const url = new URL(publicUrl())
  if (url.protocol !== 'https:') return false
  try {
    await outbound.resolve(url)
    return true
  } catch (error) {
    if (error instanceof OutboundError) return false
    throw error
  }
}

const shortText = /^[\x21-\x7e]{1,1000}$/

/** null: the issuer registers nobody who comes by themselves. */
async function register(
  { outbound, world, publicUrl }: ClientDependencies,
  { found, redirectUri }: ClientWanted,
): Promise<ChosenClient | null> {
  const library = await import('@modelcontextprotocol/client')
  const { issuer, metadata, authMethods } = found
  const what = 'The authorization server did not register this server as a client'
  // A secret binds the refresh tokens to this server.
  const method = ['client_secret_basic', 'client_secret_post', 'none'].find((one) => authMethods.includes(one))
  const sent = library.resolveClientMetadata({
    redirectUrl: redirectUri,
    clientMetadata: {
      ...clientMetadata(publicUrl(), redirectUri),
      ...(method !== undefined && { token_endpoint_auth_method: method }),
      ...(found.scopes.length > 0 && { scope: found.scopes.join(' ') }),
    },
  })
  const asking = new DiscoveryFetch({ outbound, world })
  let made: Awaited<ReturnType<typeof library.registerClient>>
  try {
    made = await library.registerClient(issuer, { metadata, clientMetadata: sent, fetchFn: asking.fetch })
  } catch (error) {
    if (error instanceof library.RegistrationRejectedError && error.status < 500 && error.status !== 429) return null
    throw providerTroubleOf(what, error)
  }
  const { client_id, client_secret, client_secret_expires_at: until = 0 } = made
  // Whoever gets codes at an address that is not this server's would be given the account.
  if (made.redirect_uris.length !== 1 || made.redirect_uris[0] !== redirectUri)
    throw new ProviderTrouble(`${what}: it registered another redirect address.`)
  const isOfOthers = client_id === clientDocumentUrl(publicUrl())
  if (isOfOthers || !shortText.test(client_id) || (client_secret !== undefined && !shortText.test(client_secret)))
    throw new ProviderTrouble(`${what}: its answer is none.`)
  const wanted = library.selectClientAuthMethod(made, authMethods)
  return {
    source: 'registration',
    clientId: client_id,
    clientSecret: wanted === 'none' ? undefined : client_secret,
    clientAuth: wanted === 'none' ? undefined : wanted === 'client_secret_post' ? 'post' : 'basic',
    // The year 2286: beyond it is nothing that a server means.
    secretExpiresAt: until > 0 && until < 1e10 ? Math.floor(until * 1_000) : null,
  }
}
