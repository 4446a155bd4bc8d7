import type { Migration } from './migration.ts'

/** When a run was offered, and how long the steps of its start and its ending took. */
export const runSpans: Migration = {
  version: 57,
  name: 'run-spans',
  async up(tx) {
    await tx.schema.alterTable('runs', (t) => {
      t.bigint('offered_at')
      t.text('spans')
    })
  },
}
