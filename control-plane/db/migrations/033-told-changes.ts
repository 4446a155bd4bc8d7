import type { Migration } from './migration.ts'

/** Keeps in which run an agent was told what became of a change that it had asked for, and through which client it asked. */
export const toldChanges: Migration = {
  version: 33,
  name: 'told-changes',
  async up(tx) {
    await tx.schema.alterTable('platform_changes', (t) => {
      t.text('told_run_id')
      t.text('source').notNullable().defaultTo('api')
      t.index(['told_run_id'])
    })
    // A change that was resolved long ago is no news.
    await tx.raw("update platform_changes set told_run_id = run_id where status <> 'pending'")
    await tx.raw('create index platform_changes_untold on platform_changes (agent_id) where told_run_id is null')
  },
}
