import type { ActorRef, AgentRef, PersonUuid, PluginId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { z } from 'zod'
import { mcpServer } from '../../../shared/runs/mcp-servers.ts'
import { int, json, nullableText, text, time } from '../../db/columns.ts'
import { agentRef, personRef, pluginId, workspaceUuid } from '../../db/id-columns.ts'
import { newestFirst, type OlderPage } from '../../db/id-page.ts'
import type { Db } from '../../db/open.ts'
import { countOf } from '../../db/reads.ts'
import { query } from '../../db/statement.ts'
import { table, type RowOf } from '../../db/table.ts'
import { onlyVisibleAgents } from '../agents/visibility.ts'

const servers = table(
  'mcp_servers',
  {
    /** `mcp_...` */
    id: text,
    workspaceId: workspaceUuid,
    /** null: all runs of the workspace have it. */
    agentRef: agentRef.nullable(),
    name: text,
    /** The name as rules know it (`ruleNameOf`), of which a workspace and each agent has one. */
    ruleName: text,
    server: json(mcpServer),
    /** The plugin that brought it, and what that calls it. */
    pluginId: pluginId.nullable(),
    nameInPlugin: nullableText,
    /** `usr_...` */
    createdByRef: personRef,
    version: int,
    createdAt: time,
    updatedAt: time,
  },
  { columns: { agentRef: 'agent_id', createdByRef: 'created_by' } },
)
export type McpServerRow = RowOf<typeof servers>

/** Throws the database's unique violation when the name is taken. */
export async function insertMcpServer(db: Db, row: McpServerRow): Promise<void> {
  await servers.insert(db, row)
}

/**
 * Fails with `transient_conflict` when somebody else changed it since it was read. Throws the database's unique violation when the
 * name is taken.
 */
export async function replaceMcpServer(db: Db, before: McpServerRow, after: McpServerRow): Promise<void> {
  await servers.replace(db, before, after)
}

export async function findMcpServer(db: Db, workspaceId: WorkspaceUuid, id: string): Promise<McpServerRow | null> {
  return servers.find(db, { workspaceId, id })
}

export async function removeMcpServer(db: Db, id: string): Promise<void> {
  await db('mcp_servers').where({ id }).delete()
}

export interface McpServerFilter {
  workspaceId: WorkspaceUuid
  /** The agent that has the servers; null: the workspace has them. */
  agentRef?: AgentRef | null
  isOfPlugin?: boolean
  /** Left out: whoever sees all. */
  visibleTo?: { personUuid: PersonUuid | null; agentRef: ActorRef | null }
}

/** Lists servers newest first; returns one row more than `limit`. Those of deleted agents are left out. */
export async function listMcpServers(db: Db, filter: McpServerFilter & OlderPage): Promise<McpServerRow[]> {
  return servers.list(
    newestFirst(
      servers.from(db).where((query) => onlyThese(query, filter)),
      filter,
    ),
  )
}

export async function countMcpServers(db: Db, filter: McpServerFilter): Promise<number> {
  return countOf(db('mcp_servers').where((query) => onlyThese(query, filter)))
}

function onlyThese(query: Knex.QueryBuilder, { workspaceId, agentRef, isOfPlugin, visibleTo }: McpServerFilter): void {
  void query.where({ workspace_id: workspaceId })
  if (agentRef !== undefined) void query.where({ agent_id: agentRef })
  if (isOfPlugin !== undefined) void (isOfPlugin ? query.whereNotNull('plugin_id') : query.whereNull('plugin_id'))
  void query.where((any) => {
    void any.whereNull('agent_id').orWhereIn('agent_id', (agents) => {
      void agents.from('agents').select('id').whereNull('deleted_at')
      if (visibleTo !== undefined) void agents.where((seen) => onlyVisibleAgents(seen, visibleTo))
    })
  })
}

const ofAgent = servers.query(
  `where workspace_id = ? and (agent_id is null or agent_id = ?) and plugin_id is null
   order by created_at, id limit 200`,
)
/** Lists what an agent's runs may be given, oldest first, without what plugins bring. */
export const listMcpServersForAgent = (
  db: Db,
  workspaceId: WorkspaceUuid,
  agentRef: AgentRef,
): Promise<McpServerRow[]> => ofAgent.list(db, [workspaceId, agentRef])

const ofEnabledPlugins = servers.query(
  `where workspace_id = ? and plugin_id in [select id from plugins where workspace_id = ? and enabled = 1]
   order by created_at, id limit 200`,
)
/** Lists what the plugins bring that are on, oldest first. */
export const listMcpServersOfPlugins = (db: Db, workspaceId: WorkspaceUuid): Promise<McpServerRow[]> =>
  ofEnabledPlugins.list(db, [workspaceId, workspaceId])

const ofPlugin = servers.query('where plugin_id = ? order by name, id')
export const listMcpServersOfPlugin = (db: Db, pluginId: PluginId): Promise<McpServerRow[]> =>
  ofPlugin.list(db, [pluginId])

const named = z.object({ ruleName: text })
const names = query(
  'select rule_name as "ruleName" from mcp_servers where workspace_id = ? and agent_id is null',
  named,
)
/** Lists the names that servers of the workspace have, as rules know them. */
export const listRuleNames = async (db: Db, workspaceId: WorkspaceUuid): Promise<string[]> =>
  (await names.list(db, [workspaceId])).map(({ ruleName }) => ruleName)
