import type { Migration } from './migration.ts'

/** Runs and folders name their devices by public id, also those that were removed since. */
export const deviceIds: Migration = {
  version: 13,
  name: 'device-ids',
  async up(tx) {
    await tx.schema.alterTable('devices', (t) => {
      t.index(['public_id'])
    })
  },
}
