import type { Migration } from './migration.ts'

/** Adds since when a provider's limit keeps an account from being used; null: an earlier release wrote the row. */
export const quotaSince: Migration = {
  version: 61,
  name: 'quota-since',
  async up(tx) {
    await tx.schema.alterTable('quota_windows', (t) => {
      t.bigint('closed_at')
    })
  },
}
