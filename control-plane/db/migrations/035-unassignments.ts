import type { Migration } from './migration.ts'

/**
 * Deleted agents that still have open tasks: more than the request took them off. A job goes on with them. And an index of what
 * is executed, in the order in which a sweep looks through it: without one SQLite at times walks all runs for it.
 */
export const unassignments: Migration = {
  version: 35,
  name: 'unassignments',
  async up(tx) {
    await tx.schema.createTable('unassignments', (t) => {
      t.text('agent_id').primary()
      t.text('workspace_id').notNullable()
      t.bigint('created_at').notNullable()
      t.index(['workspace_id'])
    })
    await tx.raw(`create index runs_executed on runs (created_at, id) where ended_at is null and status = 'running'`)
  },
}
