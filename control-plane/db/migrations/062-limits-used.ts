import type { Migration } from './migration.ts'

/** Adds how much of its provider's limits an account has used, as its last run was told. */
export const limitsUsed: Migration = {
  version: 62,
  name: 'limits-used',
  async up(tx) {
    await tx.schema.createTable('quota_uses', (t) => {
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('account').notNullable()
      t.text('used').notNullable()
      t.bigint('told_at').notNullable()
      t.bigint('true_until').notNullable()
      t.primary(['workspace_id', 'account'])
      t.index(['true_until'])
    })
  },
}
