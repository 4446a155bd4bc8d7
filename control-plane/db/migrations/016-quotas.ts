import type { Migration } from './migration.ts'

/** Adds the time until which the provider's limit keeps an account of a harness from being used, and the runs that ended by it. */
export const quotas: Migration = {
  version: 16,
  name: 'quotas',
  async up(tx) {
    await tx.schema.alterTable('runs', (t) => {
      t.bigint('limit_resets_at')
      t.bigint('in_line_since')
      t.text('provider_key_id')
    })
    await tx.raw(`create index runs_in_line on runs (workspace_id, coalesce(in_line_since, created_at), id)
      where ended_at is null`)
    await tx.schema.createTable('quota_windows', (t) => {
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('account').notNullable()
      t.bigint('resets_at').notNullable()
      t.primary(['workspace_id', 'account'])
      t.index(['resets_at'])
    })
  },
}
