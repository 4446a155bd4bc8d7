import type { Migration } from './migration.ts'

/** Containers that are made ahead of the runs that they will have, and the sandboxes that were given one. */
export const warmSandboxes: Migration = {
  version: 56,
  name: 'warm-sandboxes',
  async up(tx) {
    await tx.schema.createTable('warm_sandboxes', (t) => {
      t.text('id').primary()
      t.text('engine_id').notNullable()
      t.text('device').notNullable()
      t.text('device_id').notNullable()
      t.text('made_of').notNullable()
      t.text('image').notNullable()
      t.text('folder').notNullable()
      t.text('state').notNullable()
      t.bigint('state_at').notNullable()
      t.bigint('kept_at').notNullable()
      t.integer('version').notNullable().defaultTo(1)
      t.bigint('created_at').notNullable()
      t.index(['engine_id', 'created_at'])
    })
    await tx.schema.alterTable('sandboxes', (t) => {
      t.text('container')
    })
  },
}
