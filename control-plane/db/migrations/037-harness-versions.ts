import type { Migration } from './migration.ts'

/** The version of the program that drove a run, as its device reports it. */
export const harnessVersions: Migration = {
  version: 37,
  name: 'harness-versions',
  async up(tx) {
    await tx.schema.alterTable('runs', (t) => {
      t.text('harness_version')
    })
  },
}
