import { idFrom, type WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { McpServerRow } from '../../control-plane/resources/mcp-servers/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { ruleNameOf } from '../../shared/runs/run-mcp-servers.ts'
import { at } from './seed.ts'

export function mcpServerRow(
  workspaceId: WorkspaceUuid,
  { name = 'tracker', ...change }: Partial<McpServerRow> = {},
): McpServerRow {
  return {
    id: realWorld.id('mcp_'),
    workspaceId,
    agentRef: null,
    name,
    ruleName: ruleNameOf(name),
    server: { type: 'http', url: 'https://mcp.example.com', headers: { Authorization: 'Bearer ${KEY}' } },
    pluginId: null,
    nameInPlugin: null,
    createdByRef: idFrom('usr_0000000000000000'),
    version: 1,
    createdAt: at,
    updatedAt: at,
    ...change,
  }
}
