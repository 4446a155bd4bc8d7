import type { Migration } from './migration.ts'

/** Questions whose run waits for the answer instead of stopping. */
export const questionWaits: Migration = {
  version: 25,
  name: 'question-waits',
  async up(tx) {
    await tx.schema.alterTable('questions', (t) => {
      t.bigInteger('wait_until')
    })
    await tx.raw(
      "create index questions_waiting on questions (wait_until) where status = 'open' and wait_until is not null",
    )
  },
}
