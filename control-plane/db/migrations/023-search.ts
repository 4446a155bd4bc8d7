import { createWordIndex } from '../word-index.ts'
import type { Migration } from './migration.ts'

/** Pages that are found by their words, the pieces of their text, and what a model says of each piece. */
export const searchMigration: Migration = {
  version: 23,
  name: 'search',
  async up(tx) {
    await tx.schema.createTable('search_pages', (t) => {
      // The id is also the number in the index of words. A page that is indexed again gets a higher one.
      t.bigIncrements('id')
      t.text('workspace_id').notNullable().references('workspaces.id').index()
      t.text('subject').notNullable().unique()
      t.text('caption').notNullable()
      t.text('title').notNullable()
      t.text('headings').notNullable()
      t.text('counts').notNullable()
      t.integer('length').notNullable()
      t.integer('size').notNullable()
    })
    await createWordIndex(tx)
    await tx.schema.createTable('search_chunks', (t) => {
      t.bigIncrements('id')
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('subject').notNullable()
      t.integer('ord').notNullable()
      t.text('heading').notNullable()
      t.integer('start').notNullable()
      t.text('body').notNullable()
      t.text('digest').notNullable()
      t.text('model')
      t.bigint('embed_at').notNullable().defaultTo(0)
      t.unique(['subject', 'ord'])
      t.index(['workspace_id', 'digest'])
    })
    await tx.raw('create index search_chunks_to_embed on search_chunks (embed_at, id) where model is null')
    await tx.schema.createTable('search_vectors', (t) => {
      t.bigIncrements('id')
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('digest').notNullable()
      t.text('model').notNullable()
      t.binary('vector').notNullable()
      t.binary('code').notNullable()
      t.unique(['workspace_id', 'digest'])
      t.index(['workspace_id', 'id'])
    })
  },
}
