import type { Migration } from './migration.ts'

/** Keeps whether a person set the host name of a device, which the device's own word does not replace then. */
export const hostNames: Migration = {
  version: 32,
  name: 'host-names',
  async up(tx) {
    await tx.schema.alterTable('devices', (t) => {
      t.integer('is_hostname_set').notNullable().defaultTo(0)
    })
  },
}
