import type { Migration } from './migration.ts'

/** The harness to which the runs of an agent go while the limit of a provider keeps them from their own. */
export const fallbackHarness: Migration = {
  version: 18,
  name: 'fallback-harness',
  async up(tx) {
    await tx.schema.alterTable('agents', (t) => {
      t.text('fallback_harness')
    })
    await tx.schema.alterTable('runs', (t) => {
      t.text('fallback_harness')
      t.text('fallback_key_id')
    })
    await tx.schema.alterTable('run_details', (t) => {
      t.text('fallback_spec')
    })
  },
}
