import type { Migration } from './migration.ts'

/** Slugs that workspaces have or had, projects, and which agents were let into them. */
export const projects: Migration = {
  version: 3,
  name: 'projects',
  async up(tx) {
    // Outlives its workspace: a slug once used never names another one.
    await tx.schema.createTable('workspace_slugs', (t) => {
      t.text('slug').primary()
      t.text('workspace_id').notNullable().index()
      t.bigint('created_at').notNullable()
    })
    await tx.raw(
      'insert into workspace_slugs (slug, workspace_id, created_at) select slug, id, created_at from workspaces',
    )
    await tx.schema.createTable('projects', (t) => {
      t.text('id').primary()
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('name').notNullable()
      t.text('description').notNullable()
      t.text('status').notNullable()
      t.text('prefix')
      t.text('lead_agent_id')
      t.text('owner_user_id')
      t.text('visibility').notNullable()
      t.text('repo_url')
      t.bigint('deleted_at')
      t.integer('version').notNullable().defaultTo(1)
      t.bigint('created_at').notNullable()
      t.bigint('updated_at').notNullable()
      t.unique(['workspace_id', 'prefix'])
      t.index(['workspace_id', 'created_at', 'id'])
    })
    await tx.schema.createTable('project_grants', (t) => {
      t.text('project_id').notNullable().references('projects.id')
      t.text('agent_id').notNullable().references('agents.id').index()
      t.bigint('created_at').notNullable()
      t.primary(['project_id', 'agent_id'])
    })
  },
}
