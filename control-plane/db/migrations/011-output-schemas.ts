import type { Migration } from './migration.ts'

/** Schemas that a run's typed output may name: JSON, by name. */
export const outputSchemas: Migration = {
  version: 11,
  name: 'output-schemas',
  async up(tx) {
    await tx.schema.alterTable('run_details', (t) => {
      t.text('output_schemas')
    })
  },
}
