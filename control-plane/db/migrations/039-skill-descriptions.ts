import type { Migration } from './migration.ts'

/**
 * Adds who last wrote the description of a skill, apart from who last wrote its files: whoever has one of them written anew does not
 * answer for the other.
 */
export const skillDescriptions: Migration = {
  version: 39,
  name: 'skill-descriptions',
  async up(tx) {
    await tx.schema.alterTable('skills', (t) => {
      t.text('described_by_user_id')
    })
    await tx.raw('update skills set described_by_user_id = written_by_user_id')
  },
}
