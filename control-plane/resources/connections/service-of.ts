import type { WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { mcpServerIntegration } from '../../../shared/api/connection-fields.ts'
import type { Service, ServiceCatalog } from '../../catalog/services.ts'
import type { Db } from '../../db/open.ts'
import { addressToSignInTo } from '../mcp-servers/rules.ts'
import { findMcpServer, type McpServerRow } from '../mcp-servers/store.ts'

// A service that a connection is to: of the catalog, or an MCP server that people sign in to.

/** The id of the MCP server that a connection is to; null: it is to a service of the catalog. */
export const mcpServerIdOf = (serviceId: string): string | null =>
  serviceId.startsWith(mcpServerIntegration) ? serviceId.slice(mcpServerIntegration.length) : null

export const serviceIdOfServer = (mcpServerId: string): string => mcpServerIntegration + mcpServerId

/** null: nobody signs in to it, since it is a program, or its address is not known before a run. */
export function serviceOfServer({ id, name, server }: McpServerRow): Service | null {
  const url = addressToSignInTo(server)
  if (url === null) return null
  return { id: serviceIdOfServer(id), label: name, authKind: 'mcp_oauth', surfaces: ['mcp'], mcp: { url } }
}

/** null: there is none any more. */
export async function findService(
  { db, services }: { db: Db; services: Pick<ServiceCatalog, 'find'> },
  { workspaceId, serviceId }: { workspaceId: WorkspaceUuid; serviceId: string },
): Promise<Service | null> {
  const serverId = mcpServerIdOf(serviceId)
  if (serverId === null) return services.find(serviceId)
  const row = await findMcpServer(db, workspaceId, serverId)
  return row && serviceOfServer(row)
}
