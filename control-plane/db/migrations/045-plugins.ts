import type { Migration } from './migration.ts'

/** Adds the places from which plugins come and what is in them, and the MCP servers that they bring. */
export const plugins: Migration = {
  version: 45,
  name: 'plugins',
  async up(tx) {
    await tx.schema.alterTable('plugins', (t) => {
      t.text('plugin_version')
      t.text('description')
      t.text('format').notNullable().defaultTo('agent_plugins')
      t.text('repo_url')
      t.text('repo_ref')
      t.text('repo_path')
      t.text('repo_sha')
      t.text('plugin_hash').notNullable().defaultTo('')
      t.text('bundle_id')
      t.text('not_used').notNullable().defaultTo('[]')
      t.text('installed_by')
      t.integer('version').notNullable().defaultTo(1)
      t.bigint('created_at').notNullable().defaultTo(0)
      t.bigint('updated_at').notNullable().defaultTo(0)
      t.index(['workspace_id', 'created_at', 'id'])
    })
    await tx.schema.alterTable('mcp_servers', (t) => {
      t.text('plugin_id').references('plugins.id')
      t.text('name_in_plugin')
    })
    await tx.raw('create index mcp_servers_of_plugin on mcp_servers (plugin_id) where plugin_id is not null')
  },
}
