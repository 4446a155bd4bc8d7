import type { World } from '../../../../shared/lib/world.ts'
import { changedRow } from '../../../db/changed-row.ts'
import type { Tx } from '../../../db/open.ts'
import { findAgent } from '../../agents/store.ts'
import { isSameServer } from '../../mcp-servers/rules.ts'
import { findMcpServer, replaceMcpServer, type McpServerRow } from '../../mcp-servers/store.ts'
import { mcpServerIdOf, serviceIdOfServer, serviceOfServer } from '../service-of.ts'
import { listConnectionsOfService, type ConnectionRow } from '../store.ts'
import { queueWithdrawals } from '../withdrawal-store.ts'
import { withdraw } from './change.ts'

// The effects that sign-ins and the MCP servers that they are to have on each other.

/**
 * The server that a connection is a sign-in to, as far as it is still what was signed in to: at the same address, and of who signed in.
 * null: it is not.
 */
export async function findServerOfSignIn(
  tx: Tx,
  { workspaceId, ownerUuid }: ConnectionRow,
  { serverId, serverUrl }: { serverId: string; serverUrl: string },
): Promise<McpServerRow | null> {
  const row = await findMcpServer(tx, workspaceId, serverId)
  const url = row && serviceOfServer(row)?.mcp?.url
  if (row === null || url == null || !isSameServer(url, serverUrl)) return null
  const agent = row.agentRef === null ? null : await findAgent(tx, row.agentRef)
  return (agent?.ownerUuid ?? null) === ownerUuid ? row : null
}

/** Has the runs of the server use the sign-in. */
export async function attachSignIn(tx: Tx, { id }: ConnectionRow, server: McpServerRow, world: World): Promise<void> {
  if (server.server.type !== 'http' || server.server.connectionId === id) return
  const attached = { server: { ...server.server, connectionId: id } }
  await replaceMcpServer(tx, server, changedRow(server, attached, world.now()))
}

/** Attaches an active connection again that was taken from its server. */
export async function attachAgain(tx: Tx, row: ConnectionRow, world: World): Promise<void> {
  const serverId = mcpServerIdOf(row.serviceId)
  const server = serverId === null ? null : await findMcpServer(tx, row.workspaceId, serverId)
  if (server !== null) await attachSignIn(tx, row, server, world)
}

/** Forgets all sign-ins to a server that goes, or that is at another address from now on. Their providers are told later. */
export async function voidSignIns(
  { tx, world }: { tx: Tx; world: World },
  { id, workspaceId }: Pick<McpServerRow, 'id' | 'workspaceId'>,
  reason: string,
): Promise<void> {
  await queueWithdrawals(tx, { workspaceId, serviceId: serviceIdOfServer(id) }, world.now())
  for (const row of await listConnectionsOfService(tx, workspaceId, serviceIdOfServer(id)))
    await withdraw({ tx, world }, { row, event: 'withdraw', reason })
}
