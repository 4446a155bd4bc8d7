import type Koa from 'koa'
import { clientDocumentUrl, clientMetadata } from '../resources/connections/mcp-client.ts'
import type { SignInDependencies } from './dependencies.ts'
import { paths } from './paths.ts'
import { PageRefusal } from './request.ts'

/**
 * The metadata document of this server as an OAuth client, for issuers that take its address as the client id. It says the same to everybody,
 * costs nothing, and is read by issuers alone.
 */
export async function showConnectionClient(ctx: Koa.Context, { publicUrl }: SignInDependencies): Promise<void> {
  if (publicUrl === null || !publicUrl.startsWith('https:'))
    throw new PageRefusal(404, 'Not here', 'This server has no public address (SVC_PUBLIC_URL).')
  ctx.set('Cache-Control', 'public, max-age=300')
  ctx.body = {
    client_id: clientDocumentUrl(publicUrl),
    ...clientMetadata(publicUrl, publicUrl + paths.connectionCallback),
    token_endpoint_auth_method: 'none',
    application_type: 'web',
  }
}
