import type { Knex } from 'knex'
import type { Migration } from './migration.ts'

/** Skills, their bundles, the agents that have them, and the links by which they are shared. */
export const skills: Migration = {
  version: 38,
  name: 'skills',
  async up(tx) {
    await pluginsAndSkills(tx)
    await bundles(tx)
    await overridesAndShares(tx)
  },
}

async function pluginsAndSkills(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('plugins', (t) => {
    t.text('id').primary()
    t.text('workspace_id').notNullable().references('workspaces.id')
    t.text('name').notNullable()
    t.integer('enabled').notNullable()
    t.unique(['workspace_id', 'name'])
  })
  await tx.schema.createTable('skills', (t) => {
    t.text('id').primary()
    t.text('workspace_id').notNullable().references('workspaces.id')
    t.text('slug').notNullable()
    t.text('name').notNullable()
    t.text('description')
    t.text('source_type').notNullable()
    t.text('source_label')
    t.text('repo_url')
    t.text('repo_path')
    t.text('repo_sha')
    t.text('plugin_id').references('plugins.id')
    t.integer('enabled_by_default').notNullable()
    t.text('bundle_id').notNullable()
    t.integer('bundle_version').notNullable()
    t.integer('file_count').notNullable()
    t.integer('total_bytes').notNullable()
    t.integer('skill_md_tokens').notNullable()
    t.text('unavailable_reason')
    t.text('written_by_user_id')
    t.integer('version').notNullable().defaultTo(1)
    t.bigint('created_at').notNullable()
    t.bigint('updated_at').notNullable()
    t.index(['workspace_id', 'created_at', 'id'])
    t.index(['workspace_id', 'slug'])
    t.index(['workspace_id', 'source_type', 'created_at', 'id'])
    t.index(['workspace_id', 'enabled_by_default', 'created_at', 'id'])
  })
  await tx.raw(
    'create index skills_of_plugin on skills (workspace_id, plugin_id, created_at, id) where plugin_id is not null',
  )
  await tx.raw(
    'create index skills_of_repo on skills (workspace_id, repo_url, created_at, id) where repo_url is not null',
  )
  await tx.raw('create unique index skills_slug on skills (workspace_id, slug) where plugin_id is null')
  await tx.raw('create unique index skills_plugin_slug on skills (plugin_id, slug) where plugin_id is not null')
}

async function bundles(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('skill_bundles', (t) => {
    t.text('id').primary()
    t.text('workspace_id').notNullable().references('workspaces.id')
    t.text('blob_id').notNullable()
    t.text('bundle_hash').notNullable()
    t.text('files').notNullable()
    t.text('front_matter').notNullable()
    t.text('change_id')
    t.bigint('created_at').notNullable()
    t.bigint('retired_at')
    t.index(['workspace_id', 'bundle_hash'])
  })
  await tx.raw('create index skill_bundles_staged on skill_bundles (change_id) where change_id is not null')
  await tx.raw('create index skill_bundles_retired on skill_bundles (retired_at, id) where retired_at is not null')
}

async function overridesAndShares(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('skill_overrides', (t) => {
    t.text('skill_id').notNullable().references('skills.id')
    t.text('agent_id').notNullable()
    t.integer('enabled').notNullable()
    t.primary(['skill_id', 'agent_id'])
    t.index(['agent_id', 'skill_id'])
  })
  await tx.schema.createTable('skill_shares', (t) => {
    t.text('id').primary()
    t.text('workspace_id').notNullable().references('workspaces.id')
    t.text('skill_id')
    t.text('token_hash').notNullable().unique()
    t.text('created_by_user_id').notNullable()
    t.bigint('expires_at')
    t.bigint('revoked_at')
    t.integer('version').notNullable().defaultTo(1)
    t.bigint('created_at').notNullable()
    t.index(['workspace_id'])
  })
  await tx.raw(
    'create index skill_shares_of_skill on skill_shares (skill_id, created_at, id) where skill_id is not null',
  )
}
