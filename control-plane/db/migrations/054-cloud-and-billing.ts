import type { Migration } from './migration.ts'

/** Workspaces in which no run of the cloud, or none at all, may be made; lists of sandboxes. */
export const cloudAndBilling: Migration = {
  version: 54,
  name: 'cloud-and-billing',
  async up(tx) {
    await tx.schema.alterTable('workspaces', (t) => {
      t.integer('cloud_enabled').notNullable().defaultTo(1)
      t.integer('is_billing_locked').notNullable().defaultTo(0)
    })
    await tx.schema.alterTable('sandboxes', (t) => {
      t.dropIndex(['workspace_id', 'created_at'])
      t.index(['workspace_id', 'created_at', 'id'])
    })
    await tx.raw('create index sandboxes_listed on sandboxes (workspace_id, created_at, id) where removed_at is null')
  },
}
