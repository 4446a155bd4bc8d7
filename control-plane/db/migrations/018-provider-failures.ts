import type { Migration } from './migration.ts'

/**
 * The harness to which the runs of an agent go while their provider keeps them from their own, which runs a failure of their
 * provider ended, and until when a device leaves such a provider alone.
 */
export const providerFailures: Migration = {
  version: 18,
  name: 'provider-failures',
  async up(tx) {
    await tx.schema.alterTable('agents', (t) => {
      t.text('fallback_harness')
    })
    await tx.schema.alterTable('runs', (t) => {
      t.text('fallback_harness')
      t.text('fallback_key_id')
      t.text('fallback_model')
      t.integer('provider_failed')
    })
    await tx.schema.alterTable('run_details', (t) => {
      t.text('fallback_spec')
    })
    await tx.schema.createTable('provider_circuits', (t) => {
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('device').notNullable()
      t.text('provider').notNullable()
      t.integer('times').notNullable()
      t.bigint('opened_at').notNullable()
      t.bigint('open_until').notNullable()
      t.primary(['workspace_id', 'device', 'provider'])
      t.index(['open_until'])
    })
  },
}
