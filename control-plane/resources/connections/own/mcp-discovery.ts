import type * as McpClient from '@modelcontextprotocol/client'
import { z } from 'zod'
import type { World } from '../../../../shared/lib/world.ts'
import type { Outbound } from '../../../outbound/outbound.ts'
import { outboundIn, ProviderTrouble, type OutboundFetch } from './oauth.ts'

/**
 * The place where the people of an MCP server sign in: the server names its authorization server (RFC 9728), and that one its addresses
 * (RFC 8414 or OpenID Connect Discovery). All of it is what strangers say. So what the server says must be about the server itself, and
 * what the authorization server says about itself.
 */
export interface FoundIssuer {
  issuer: string
  authorizeUrl: string
  tokenUrl: string
  revokeUrl: string | undefined
  /** RFC 7591; undefined: it registers nobody. */
  registerUrl: string | undefined
  /** The address of a metadata document is a client id there. */
  takesDocuments: boolean
  /** RFC 9207. */
  saysIssuer: boolean
  /** The ways in which clients may show who they are; empty: the issuer does not say. */
  authMethods: string[]
  /** RFC 8707; undefined: the server describes itself nowhere, as servers of 2025-03 do not. */
  resource: string | undefined
  scopes: string[]
  /** The issuer's description as the library read it, for registering. */
  metadata: McpClient.AuthorizationServerMetadata
}

/** Bounds of one answer, and of the time of all together. */
export const discoveryLimits = { bytes: 256 * 1024, timeoutMs: 10_000, totalMs: 25_000 } as const

export interface Discovering {
  outbound: Pick<Outbound, 'fetch' | 'resolve'>
  world: Pick<World, 'monotonic'>
}

/** A fetch for the library. It notes how the last answer came out, which the errors of the library do not say. */
export class DiscoveryFetch {
  lastStatus = 0
  lastText = ''
  private readonly outbound: OutboundFetch
  private readonly world: Pick<World, 'monotonic'>
  private readonly until: number

  constructor({ outbound, world }: { outbound: OutboundFetch; world: Pick<World, 'monotonic'> }) {
    this.outbound = outbound
    this.world = world
    this.until = world.monotonic() + discoveryLimits.totalMs
  }

  /** An answer whose body has not been read. */
  ask(input: string | URL, init?: RequestInit): Promise<Response> {
    const timeoutMs = Math.max(1, Math.min(discoveryLimits.timeoutMs, this.until - this.world.monotonic()))
    return this.outbound.fetch(input, { ...init, limits: { bytes: discoveryLimits.bytes, timeoutMs, redirects: 0 } })
  }

  readonly fetch = async (input: string | URL, init?: RequestInit): Promise<Response> => {
    this.lastStatus = 0
    const answer = await this.ask(input, init)
    const text = await answer.text()
    const { status, headers } = answer
    this.lastStatus = status
    this.lastText = text
    const isEmpty = text === '' || status === 204 || status === 304
    return new Response(isEmpty ? null : text, { status, headers })
  }
}

/** Asks the server, and the authorization server that it names. Fails with ProviderTrouble. */
export async function findIssuer(serverUrl: string, { outbound, world }: Discovering): Promise<FoundIssuer> {
  const library = await import('@modelcontextprotocol/client')
  const asking = new DiscoveryFetch({ outbound, world })
  const challenge = await challengeOf(serverUrl, { library, asking })
  const described = await describedServer(serverUrl, { library, asking, metadataUrl: challenge.resourceMetadataUrl })
  // Servers of 2025-03 describe themselves nowhere: people sign in at their own origin.
  const named = described?.issuer ?? new URL('/', serverUrl).href
  const metadata = await describedIssuer(named, { library, asking })
  for (const url of [metadata.authorization_endpoint, metadata.token_endpoint])
    await guarded('The authorization server has an address that is not asked', () => outbound.resolve(new URL(url)))
  const scopes = challenge.scope === undefined ? (described?.scopes ?? []) : readScopes(challenge.scope.split(' '))
  const offline = metadata.scopes_supported?.includes('offline_access') === true ? ['offline_access'] : []
  return {
    issuer: metadata.issuer,
    authorizeUrl: metadata.authorization_endpoint,
    tokenUrl: metadata.token_endpoint,
    revokeUrl: metadata.revocationUrl,
    registerUrl: metadata.registration_endpoint,
    takesDocuments: metadata.client_id_metadata_document_supported === true,
    saysIssuer: metadata.authorization_response_iss_parameter_supported === true,
    authMethods: metadata.token_endpoint_auth_methods_supported ?? [],
    resource: described?.resource,
    scopes: [...new Set([...scopes, ...offline])].slice(0, 100),
    metadata,
  }
}

type Library = typeof McpClient
interface Asking {
  library: Library
  asking: DiscoveryFetch
}

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'svc', version: '1' } },
}

/** Returns what the server says to who has no token. */
async function challengeOf(serverUrl: string, { library, asking }: Asking) {
  const answer = await guarded('The MCP server could not be asked', () =>
    asking.ask(serverUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify(initialize),
      redirect: 'manual',
    }),
  )
  await answer.body?.cancel()
  return answer.status === 401 || answer.status === 403 ? library.extractWWWAuthenticateParams(answer) : {}
}

/** Returns what the server says of itself; null: nothing. */
async function describedServer(
  serverUrl: string,
  { library, asking, metadataUrl }: Asking & { metadataUrl: URL | undefined },
): Promise<{ issuer: string | undefined; resource: string; scopes: string[] } | null> {
  const what = 'The MCP server does not say well where people sign in'
  let said: Awaited<ReturnType<Library['discoverOAuthProtectedResourceMetadata']>>
  try {
    const at = metadataUrl === undefined ? {} : { resourceMetadataUrl: metadataUrl }
    said = await library.discoverOAuthProtectedResourceMetadata(serverUrl, at, asking.fetch)
  } catch (error) {
    const isThere = metadataUrl !== undefined || asking.lastStatus < 400 || asking.lastStatus > 499
    if (isThere) throw providerTroubleOf(what, error)
    return null
  }
  const requestedResource = library.resourceUrlFromServerUrl(serverUrl)
  // RFC 9728, section 3.3. Otherwise a server could have people sign in for another one, and get what is meant for that.
  if (!library.checkResourceAllowed({ requestedResource, configuredResource: said.resource }))
    throw new ProviderTrouble(`${what}: it describes another server.`)
  const resource = library.resourceUrlFromServerUrl(said.resource).href
  return { issuer: said.authorization_servers?.[0], resource, scopes: readScopes(said.scopes_supported) }
}

const readScopes = (scopes: readonly string[] | undefined): string[] =>
  (scopes ?? []).filter((scope) => /^[\x21\x23-\x5b\x5d-\x7e]{1,500}$/.test(scope)).slice(0, 100)

/** Lost where the library reads OpenID Connect. */
const revocation = z.object({
  revocation_endpoint: z
    .url({ protocol: /^https?$/ })
    .max(2_000)
    .optional()
    .catch(undefined),
})

async function describedIssuer(named: string, { library, asking }: Asking) {
  const what = 'The authorization server of the MCP server does not describe itself well'
  if (!/^[\x21-\x7e]{1,1000}$/.test(named)) throw new ProviderTrouble(`${what}: its name is none.`)
  const fetchFn = asking.fetch
  // The library compares the issuer with the address under which it was asked (RFC 8414, section 3.3).
  const said = await guarded(what, () => library.discoverAuthorizationServerMetadata(named, { fetchFn })).catch(
    (error: ProviderTrouble) => {
      const isOther = error.cause instanceof library.IssuerMismatchError
      throw isOther ? new ProviderTrouble(`${what}: it says that it is another one.`, { cause: error.cause }) : error
    },
  )
  if (said === undefined) throw new ProviderTrouble('The MCP server does not say where people sign in.')
  if (!said.response_types_supported.includes('code')) throw new ProviderTrouble(`${what}: it gives no codes.`)
  // Clients of MCP must not go on without PKCE.
  if (said.code_challenge_methods_supported?.includes('S256') !== true)
    throw new ProviderTrouble(`${what}: it does not say that it takes PKCE with S256.`)
  const { revocation_endpoint } = revocation.parse(JSON.parse(asking.lastText))
  return { ...said, revocationUrl: revocation_endpoint }
}

async function guarded<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw providerTroubleOf(what, error)
  }
}

/** The texts of other errors may quote what was said. */
export function providerTroubleOf(what: string, error: unknown): ProviderTrouble {
  const outbound = outboundIn(error)
  return new ProviderTrouble(outbound === null ? `${what}.` : `${what}: ${outbound.message}.`, { cause: error })
}
