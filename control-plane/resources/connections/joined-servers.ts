import { joinedServers } from '../../../shared/runs/run-mcp-servers.ts'
import type { Db } from '../../db/open.ts'
import type { AgentRow } from '../agents/store.ts'
import { serversOf, type AgentConnection } from './agent-connections.ts'
import type { WorkspaceRow } from '../workspaces/store.ts'
import { listMcpServersForAgent, listMcpServersOfPlugins, type McpServerRow } from '../mcp-servers/store.ts'

/**
 * Returns all servers for the runs of an agent: its own win over the workspace's, these over those of its setting, then those of plugins,
 * and all over those of connections. A connection that a server names already has no second one.
 */
export async function mcpServersOfAgent(
  db: Db,
  { id, workspaceId }: Pick<AgentRow, 'id' | 'workspaceId'>,
  {
    workspace: { mcpServers },
    connections,
  }: { workspace: Pick<WorkspaceRow, 'mcpServers'>; connections: readonly AgentConnection[] },
): Promise<Readonly<Record<string, unknown>>> {
  const rows = await listMcpServersForAgent(db, workspaceId, id)
  const byName = (of: readonly McpServerRow[]) => Object.fromEntries(of.map(({ name, server }) => [name, server]))
  const [own, all] = [
    rows.filter(({ agentRef }) => agentRef !== null),
    rows.filter(({ agentRef }) => agentRef === null),
  ]
  const brought = await listMcpServersOfPlugins(db, workspaceId)
  const named = new Set(
    [...rows, ...brought].flatMap(({ server }) => (server.type === 'stdio' ? [] : [server.connectionId])),
  )
  const ofConnections = serversOf(connections.filter(({ row }) => !named.has(row.id)))
  return joinedServers(byName(own), byName(all), withoutConnections(mcpServers), byName(brought), ofConnections)
}

/** Whoever writes the setting has not been asked whether they see a connection. */
const withoutConnections = (servers: WorkspaceRow['mcpServers']) =>
  servers &&
  Object.fromEntries(
    Object.entries(servers).map(([name, server]) => {
      if (typeof server !== 'object' || server === null || !('connectionId' in server)) return [name, server]
      const { connectionId: _, ...rest } = server
      return [name, rest]
    }),
  )
