import type { Migration } from './migration.ts'

/**
 * Adds the marks of what is large, which the request sets that removes or cancels it; the rest is done in batches afterwards: workspaces
 * and conversations that are gone while their rows are not, and runs that are cancelled by the hundred.
 */
export const removals: Migration = {
  version: 36,
  name: 'removals',
  async up(tx) {
    for (const table of ['workspaces', 'conversations']) {
      await tx.schema.alterTable(table, (t) => t.bigint('removed_at'))
      await tx.raw(`create index ${table}_removed on ${table} (removed_at, id) where removed_at is not null`)
    }
    // The end of a workspace looks for what refers to it.
    await tx.schema.alterTable('login_tokens', (t) => t.index(['workspace_id']))
    await tx.schema.createTable('run_cancellations', (t) => {
      t.text('id').primary()
      t.text('workspace_id').notNullable()
      // `workspace`, `agent` or `person`: whose runs.
      t.text('subject').notNullable()
      t.text('subject_id').notNullable()
      // `waiting`: runs that no device executes; `live`: all.
      t.text('extent').notNullable()
      t.text('exit_reason').notNullable()
      t.text('reason')
      // The last run that was seen to; runs made after `created_at` are not meant.
      t.bigint('seen_at').notNullable()
      t.text('seen_id').notNullable()
      t.bigint('created_at').notNullable()
      t.index(['workspace_id'])
    })
  },
}
