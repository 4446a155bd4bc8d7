import type { Knex } from 'knex'
import type { Migration } from './migration.ts'

/** Adds the tables in which files are kept. */
export const files: Migration = {
  version: 21,
  name: 'files',
  async up(tx) {
    await blobs(tx)
    await filesAndRevisions(tx)
  },
}

async function filesAndRevisions(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('files', (t) => {
    t.text('id').primary()
    t.text('workspace_id').notNullable().references('workspaces.id')
    t.text('name').notNullable()
    t.text('content_type')
    t.integer('size_bytes').notNullable()
    t.text('description')
    t.text('owner_user_id')
    t.text('visibility').notNullable()
    t.text('created_by_type').notNullable()
    t.text('created_by_id').notNullable()
    t.text('sha256').notNullable()
    t.text('text_preview')
    t.integer('revision_count').notNullable()
    t.text('blob_id')
    t.bigint('deleted_at')
    t.integer('version').notNullable().defaultTo(1)
    t.bigint('created_at').notNullable()
    t.bigint('updated_at').notNullable()
    t.index(['workspace_id', 'created_at', 'id'])
  })
  await tx.raw('create index files_deleted on files (deleted_at) where deleted_at is not null')
  await tx.schema.createTable('file_revisions', (t) => {
    t.text('id').primary()
    t.text('file_id').notNullable().references('files.id')
    t.integer('number').notNullable()
    t.text('blob_id')
    t.integer('size_bytes').notNullable()
    t.text('content_type')
    t.text('sha256').notNullable()
    t.text('author_type').notNullable()
    t.text('author_id').notNullable()
    t.bigint('created_at').notNullable()
    t.unique(['file_id', 'number'])
  })
  await tx.schema.createTable('file_relations', (t) => {
    t.text('id').primary()
    t.text('file_id').notNullable().references('files.id')
    t.text('entity_type').notNullable()
    t.text('entity_id').notNullable()
    t.text('role').notNullable()
    t.bigint('created_at').notNullable()
    t.unique(['file_id', 'entity_type', 'entity_id', 'role'])
    t.index(['file_id', 'created_at', 'id'])
    t.index(['entity_type', 'entity_id', 'file_id'])
  })
}

/** Bytes that lie in the storage of files, and those that are to be there or to be removed. */
async function blobs(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('blobs', (t) => {
    t.text('id').primary()
    // The column is no reference: the bytes outlive a removed workspace until they are removed.
    t.text('workspace_id').notNullable().index()
    t.text('upload')
    t.bigint('created_at').notNullable()
    t.bigint('owned_at')
    t.bigint('released_at')
  })
  await tx.raw('create index blobs_released on blobs (released_at, id) where released_at is not null')
  await tx.raw('create index blobs_intended on blobs (created_at) where owned_at is null and released_at is null')
}
