import type { Knex } from 'knex'
import type { Service, ServiceCatalog } from '../../../catalog/services.ts'
import type { Vault } from '../../../vault/vault.ts'
import { isSameServer } from '../../mcp-servers/rules.ts'
import { findConnectionClient } from './client-store.ts'
import type { Credential, OauthCredential } from './credential.ts'
import { openClientSecret } from '../mcp-client.ts'
import { isOfProvider, providerOf, type Provider } from './oauth.ts'
import type { ConnectionRow } from '../store.ts'

interface Dependencies {
  root: Knex
  vault: Pick<Vault, 'open'>
  services: Pick<ServiceCatalog, 'clientAt'>
}

/**
 * The provider that renews and withdraws what is held; null: it is no matter of a provider. `why`: it was given for something else than
 * what is there now, and goes nowhere.
 */
export async function providerOfHeld(
  deps: Dependencies,
  { row, service, held }: { row: ConnectionRow; service: Service; held: Credential | null },
): Promise<{ provider: Provider | null } | { why: string }> {
  if (held?.kind !== 'oauth') return { provider: null }
  const { mcp } = held
  if (mcp !== undefined) return providerOfServer(deps, { row, service, held, mcp })
  const provider = providerOf(service)
  if (provider !== null && isOfProvider(provider, held)) return { provider }
  return { why: 'The catalog has another provider than the one that gave the token.' }
}

/** The provider that gave tokens, whatever has become of their service; null: nobody knows it any more, or this server's client there. */
export async function providerThatGave(
  deps: Dependencies & { services: Pick<ServiceCatalog, 'find'> },
  of: Place,
  held: OauthCredential,
): Promise<Provider | null> {
  if (held.mcp !== undefined) return providerOfSignIn(deps, of, { ...held, mcp: held.mcp })
  const service = deps.services.find(of.serviceId)
  const provider = service && providerOf(service)
  return provider !== null && isOfProvider(provider, held) ? provider : null
}
type Place = Pick<ConnectionRow, 'workspaceId' | 'serviceId'>

async function providerOfServer(
  deps: Dependencies,
  {
    row,
    service,
    held,
    mcp,
  }: { row: ConnectionRow; service: Service; held: OauthCredential; mcp: HeldOfServer['mcp'] },
): Promise<{ provider: Provider } | { why: string }> {
  if (service.authKind !== 'mcp_oauth' || !isSameServer(mcp.serverUrl, service.mcp?.url ?? ''))
    return { why: 'The MCP server has another address than the one that was signed in to.' }
  const provider = await providerOfSignIn(deps, row, { ...held, mcp })
  return provider === null
    ? { why: 'This server has another OAuth client there than the one that signed in.' }
    : { provider }
}

type HeldOfServer = OauthCredential & { mcp: NonNullable<OauthCredential['mcp']> }

async function providerOfSignIn(deps: Dependencies, of: Place, held: HeldOfServer): Promise<Provider | null> {
  const { issuer, tokenUrl, clientId, mcp } = held
  const client = await clientOf(deps, of, held)
  return client && { ...mcp, issuer, tokenUrl, clientId, ...client }
}

/** The secret of the client that signed in. It belongs to the issuer that gave the tokens. */
async function clientOf(
  { root, vault, services }: Dependencies,
  { workspaceId, serviceId }: Place,
  { issuer, clientId, mcp }: HeldOfServer,
): Promise<{ clientSecret?: string | undefined } | null> {
  if (mcp.clientSource === 'document') return {}
  if (mcp.clientSource === 'operator') {
    const client = services.clientAt(issuer, serviceId)
    return client?.clientId === clientId ? { clientSecret: client.clientSecret } : null
  }
  const client = await findConnectionClient(root, { workspaceId, issuer, clientId })
  return client && { clientSecret: openClientSecret(vault, client) }
}
