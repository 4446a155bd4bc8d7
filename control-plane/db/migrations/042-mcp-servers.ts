import type { Migration } from './migration.ts'

/** MCP servers of workspaces and of single agents, beside those of the workspace's setting. */
export const mcpServers: Migration = {
  version: 42,
  name: 'mcp-servers',
  async up(tx) {
    await tx.schema.createTable('mcp_servers', (t) => {
      t.text('id').primary()
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('agent_id').references('agents.id')
      t.text('name').notNullable()
      t.text('rule_name').notNullable()
      t.text('server').notNullable()
      t.text('created_by').notNullable()
      t.integer('version').notNullable().defaultTo(1)
      t.bigint('created_at').notNullable()
      t.bigint('updated_at').notNullable()
      t.index(['workspace_id', 'created_at', 'id'])
    })
    await tx.raw(
      'create unique index mcp_servers_of_workspace on mcp_servers (workspace_id, rule_name) where agent_id is null',
    )
    await tx.raw(
      'create unique index mcp_servers_of_agent on mcp_servers (agent_id, rule_name) where agent_id is not null',
    )
  },
}
