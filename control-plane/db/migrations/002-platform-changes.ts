import type { Migration } from './migration.ts'

/** Writes of agents that wait for a person's approval. */
export const platformChanges: Migration = {
  version: 2,
  name: 'platform-changes',
  async up(tx) {
    await tx.schema.createTable('platform_changes', (t) => {
      t.text('id').primary()
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('agent_id').notNullable()
      t.text('run_id').notNullable()
      t.text('route_id').notNullable()
      t.text('params').notNullable()
      t.text('body').notNullable()
      t.text('status').notNullable()
      t.bigint('created_at').notNullable()
      t.index(['workspace_id', 'created_at', 'id'])
    })
  },
}
