import type { Knex } from 'knex'
import type { Migration } from './migration.ts'

/** The pages of the wiki, their texts, and how they refer to one another. */
export const wiki: Migration = {
  version: 22,
  name: 'wiki',
  async up(tx) {
    await pages(tx)
    await revisions(tx)
    await references(tx)
  },
}

async function pages(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('wiki_pages', (t) => {
    t.text('id').primary()
    t.text('workspace_id').notNullable().references('workspaces.id')
    t.text('slug').notNullable()
    t.text('title').notNullable()
    t.text('kind').notNullable()
    t.text('source_ref')
    t.text('current_revision_id')
    t.integer('token_count')
    t.integer('revision_count').notNullable()
    t.bigint('archived_at')
    t.integer('version').notNullable().defaultTo(1)
    t.bigint('created_at').notNullable()
    t.bigint('updated_at').notNullable()
    // An archived page keeps its slug.
    t.unique(['workspace_id', 'slug'])
    t.index(['workspace_id', 'created_at', 'id'])
  })
  await tx.raw(
    'create index wiki_pages_archived on wiki_pages (workspace_id, created_at, id) where archived_at is not null',
  )
}

async function revisions(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('wiki_revisions', (t) => {
    t.text('id').primary()
    t.text('page_id').notNullable().references('wiki_pages.id')
    t.integer('number').notNullable()
    t.text('title').notNullable()
    t.text('base_revision_id')
    t.text('source_ref')
    t.text('author_type').notNullable()
    t.text('author_id').notNullable()
    t.text('task_id')
    t.text('run_id')
    t.integer('size_bytes').notNullable()
    t.text('failed_checks').notNullable()
    t.bigint('created_at').notNullable()
    // The last column, so that a list reads past none of the texts.
    t.text('body').notNullable()
    t.unique(['page_id', 'number'])
  })
}

async function references(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('wiki_links', (t) => {
    t.text('page_id').notNullable().references('wiki_pages.id')
    t.integer('ord').notNullable()
    t.text('workspace_id').notNullable()
    t.text('url').notNullable()
    t.text('text').notNullable()
    t.text('target_slug')
    // The column is no reference: the page may be gone, or never have been there.
    t.text('target_page_id')
    t.primary(['page_id', 'ord'])
  })
  await tx.raw(
    'create index wiki_links_to_page on wiki_links (target_page_id, page_id) where target_page_id is not null',
  )
  await tx.raw(
    'create index wiki_links_to_slug on wiki_links (workspace_id, target_slug, page_id) where target_slug is not null',
  )
  await tx.schema.createTable('wiki_relations', (t) => {
    t.text('from_page_id').notNullable().references('wiki_pages.id')
    t.text('to_page_id').notNullable().references('wiki_pages.id')
    t.bigint('created_at').notNullable()
    t.primary(['from_page_id', 'to_page_id'])
    t.index(['to_page_id'])
  })
}
