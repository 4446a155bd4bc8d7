import type { Knex } from 'knex'
import type { Migration } from './migration.ts'

/** What files are kept in. */
export const files: Migration = {
  version: 21,
  name: 'files',
  async up(tx) {
    await blobs(tx)
  },
}

/** Bytes that lie in the storage of files, and those that are to be there or to be removed. */
async function blobs(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('blobs', (t) => {
    t.text('id').primary()
    // No reference: the bytes outlive a removed workspace until they are removed.
    t.text('workspace_id').notNullable().index()
    t.text('upload')
    t.bigint('created_at').notNullable()
    t.bigint('owned_at')
    t.bigint('released_at')
  })
  await tx.raw('create index blobs_released on blobs (released_at, id) where released_at is not null')
  await tx.raw('create index blobs_intended on blobs (created_at) where owned_at is null and released_at is null')
}
