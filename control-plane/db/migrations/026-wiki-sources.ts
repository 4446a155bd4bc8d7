import type { Migration } from './migration.ts'

/** The files from which pages come. */
export const wikiSources: Migration = {
  version: 26,
  name: 'wiki sources',
  async up(tx) {
    await tx.schema.createTable('wiki_sources', (t) => {
      t.text('page_id').primary().references('wiki_pages.id')
      t.text('workspace_id').notNullable()
      t.text('root').notNullable()
      t.text('path').notNullable()
      t.text('sha256').notNullable()
      t.unique(['workspace_id', 'root', 'path'])
    })
  },
}
