import type { Migration } from './migration.ts'

/** Sandboxes of cloud runs, the engines that have them, and the devices that they are to the link. */
export const sandboxes: Migration = {
  version: 49,
  name: 'sandboxes',
  async up(tx) {
    await tx.schema.createTable('sandbox_engines', (t) => {
      t.text('id').primary()
      t.text('kind').notNullable()
      t.integer('most').notNullable()
      t.integer('most_of_workspace').notNullable()
      t.bigint('ready_at').notNullable()
    })
    await tx.schema.createTable('sandboxes', (t) => {
      t.text('id').primary()
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('run_id').notNullable()
      t.integer('fence').notNullable()
      t.text('engine_id').notNullable()
      t.text('device').notNullable()
      t.text('size').notNullable()
      t.text('state').notNullable()
      t.text('folder')
      t.text('image')
      t.text('trouble')
      t.bigint('state_at').notNullable()
      t.bigint('removed_at')
      t.integer('version').notNullable().defaultTo(1)
      t.bigint('created_at').notNullable()
      t.index(['run_id', 'created_at'])
      t.index(['workspace_id', 'created_at'])
    })
    await tx.raw('create unique index sandboxes_of_run on sandboxes (run_id) where removed_at is null')
    await tx.raw('create index sandboxes_there on sandboxes (engine_id, workspace_id) where removed_at is null')
    await tx.schema.alterTable('devices', (t) => {
      t.text('sandbox_id')
    })
  },
}
