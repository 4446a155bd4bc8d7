import type { Migration } from './migration.ts'

/** Credentials of connections that are gone, until their providers have withdrawn them. They outlive the rows of their workspace. */
export const connectionWithdrawals: Migration = {
  version: 51,
  name: 'connection-withdrawals',
  async up(tx) {
    await tx.schema.createTable('connection_withdrawals', (t) => {
      t.text('id').primary()
      t.text('connection_id').notNullable()
      t.text('workspace_id').notNullable()
      t.text('service_id').notNullable()
      t.binary('credential').notNullable()
      t.integer('tries').notNullable()
      t.bigint('due_at').notNullable()
      t.index(['due_at', 'id'], 'connection_withdrawals_due')
      t.index(['workspace_id'], 'connection_withdrawals_of_workspace')
    })
  },
}
