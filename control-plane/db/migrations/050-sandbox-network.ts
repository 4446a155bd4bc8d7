import type { Migration } from './migration.ts'

/** Adds what sandboxes ask for through their brokers, and the hosts that a workspace lets them reach. */
export const sandboxNetwork: Migration = {
  version: 50,
  name: 'sandbox-network',
  async up(tx) {
    await tx.schema.createTable('run_network', (t) => {
      t.text('run_id').notNullable()
      t.text('host').notNullable()
      t.text('decision').notNullable()
      t.bigint('requests').notNullable()
      t.bigint('bytes_sent').notNullable()
      t.bigint('bytes_received').notNullable()
      t.bigint('first_at').notNullable()
      t.bigint('last_at').notNullable()
      t.primary(['run_id', 'host', 'decision'])
    })
    await tx.schema.alterTable('workspaces', (t) => {
      t.text('sandbox_egress').notNullable().defaultTo('[]')
    })
  },
}
