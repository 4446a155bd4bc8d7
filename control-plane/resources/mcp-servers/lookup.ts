import type { Db } from '../../db/open.ts'
import type { Caller } from '../../http/callers.ts'
import { isAgentVisible, viewerOfAgents } from '../agents/rules.ts'
import { findAgent, type AgentRow } from '../agents/store.ts'
import { findMcpServer, type McpServerRow } from './store.ts'

/** A server that the caller sees, and the agent whose it is; null: there is none. Those of a deleted agent come back with it. */
export async function lookUpMcpServer(
  db: Db,
  caller: Caller,
  id: string,
): Promise<{ row: McpServerRow; agent: AgentRow | null } | null> {
  const row = await findMcpServer(db, caller.workspaceId, id)
  if (row === null || row.agentRef === null) return row && { row, agent: null }
  const agent = await findAgent(db, row.agentRef)
  if (agent === null || agent.deletedAt !== null || !isAgentVisible(agent, viewerOfAgents(caller))) return null
  return { row, agent }
}
