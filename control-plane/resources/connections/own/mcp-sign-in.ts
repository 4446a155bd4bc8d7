import type { WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import type { Service } from '../../../catalog/services.ts'
import type { SignInAttempt } from './credential.ts'
import { chooseClient, type ClientDependencies } from '../mcp-client.ts'
import { findIssuer } from './mcp-discovery.ts'
import { beginSignIn, type Provider } from './oauth.ts'
import type { KeyFields } from '../rules.ts'

/** A sign-in to an MCP server, which says itself where people sign in. `askAt`: a person is to register a client there. Fails with ProviderTrouble. */
export async function beginMcpSignIn(
  deps: ClientDependencies,
  service: Service,
  of: { workspaceId: WorkspaceUuid; redirectUri: string; given: KeyFields | null; isAgain: boolean },
): Promise<{ authorizeUrl: string; attempt: SignInAttempt } | { askAt: string }> {
  const { outbound, world } = deps
  const serverUrl = service.mcp!.url
  const found = await findIssuer(serverUrl, { outbound, world })
  const chosen = await chooseClient(deps, { ...of, serviceId: service.id, found })
  if (chosen === null) return { askAt: found.issuer }
  const { issuer, authorizeUrl, tokenUrl, revokeUrl, resource, saysIssuer } = found
  const { clientId, clientSecret, clientAuth, source: clientSource, secretExpiresAt } = chosen
  const provider = {
    issuer,
    authorizeUrl,
    tokenUrl,
    revokeUrl,
    resource,
    saysIssuer,
    clientId,
    clientSecret,
    clientAuth,
  }
  const scopes = service.scopes ?? found.scopes
  const { redirectUri } = of
  const begun = await beginSignIn(provider, { scopes, redirectUri, outbound })
  return {
    ...begun,
    attempt: { ...begun.attempt, mcp: { ...provider, serverUrl, clientSource, scopes, secretExpiresAt } },
  }
}

/** The provider that a sign-in to an MCP server was begun at. */
export const providerOfAttempt = ({ issuer }: SignInAttempt, mcp: NonNullable<SignInAttempt['mcp']>): Provider => ({
  ...mcp,
  issuer,
})
