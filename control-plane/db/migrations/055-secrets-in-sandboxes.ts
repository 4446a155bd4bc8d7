import type { Migration } from './migration.ts'

/** Adds the settings by which the runs of sandboxes get a secret. */
export const secretsInSandboxes: Migration = {
  version: 55,
  name: 'secrets-in-sandboxes',
  async up(tx) {
    await tx.schema.alterTable('secrets', (t) => {
      t.text('broker_hosts').notNullable().defaultTo('[]')
      t.integer('is_cloud_plain').notNullable().defaultTo(0)
    })
  },
}
