import type { Migration } from './migration.ts'

/** Adds what workspaces and agents have otherwise with the skills that svc brings, which have no rows of their own. */
export const builtinSkills: Migration = {
  version: 48,
  name: 'builtin-skills',
  async up(tx) {
    await tx.schema.createTable('builtin_skill_settings', (t) => {
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('slug').notNullable()
      t.text('agent_id').notNullable()
      t.integer('enabled').notNullable()
      t.bigint('updated_at').notNullable()
      t.primary(['workspace_id', 'slug', 'agent_id'])
    })
  },
}
