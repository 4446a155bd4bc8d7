import type { Migration } from './migration.ts'

/** Runs that only make the session of another one smaller. */
export const compactions: Migration = {
  version: 19,
  name: 'idle-compaction',
  async up(tx) {
    await tx.schema.alterTable('runs', (t) => {
      t.integer('compacts')
    })
    await tx.raw('create index runs_compacting on runs (agent_id) where compacts = 1')
  },
}
