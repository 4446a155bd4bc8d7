import type { Migration } from './migration.ts'

/** Learnings and what they are about. */
export const learnings: Migration = {
  version: 24,
  name: 'learnings',
  async up(tx) {
    await tx.schema.createTable('learnings', (t) => {
      t.text('id').primary()
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('topic').notNullable()
      t.text('status').notNullable()
      t.text('bullets').notNullable()
      t.text('agent_id')
      t.text('run_id')
      t.text('task_id')
      t.text('conversation_id')
      t.text('approval_id').notNullable().unique()
      t.text('rejected_reason')
      t.integer('version').notNullable().defaultTo(1)
      t.bigint('created_at').notNullable()
      t.bigint('updated_at').notNullable()
      t.index(['workspace_id', 'created_at', 'id'])
      t.index(['workspace_id', 'status', 'created_at', 'id'])
      t.index(['conversation_id', 'created_at', 'id'])
    })
    await tx.schema.createTable('learning_entities', (t) => {
      t.text('learning_id').notNullable().references('learnings.id')
      t.text('workspace_id').notNullable()
      t.integer('ord').notNullable()
      t.text('type').notNullable()
      t.text('name').notNullable()
      t.primary(['learning_id', 'ord'])
      t.index(['workspace_id', 'type', 'name', 'learning_id'])
      t.index(['workspace_id', 'name', 'learning_id'])
    })
  },
}
