import type { Migration } from './migration.ts'

/** What is left of runs that were removed for their age, and indexes by which a sweep finds what is old. */
export const retention: Migration = {
  version: 60,
  name: 'retention',
  async up(tx) {
    await tx.schema.createTable('removed_runs', (t) => {
      t.text('id').primary()
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('agent_id').notNullable()
      t.text('task_id')
      t.text('task_key')
      t.text('task_title')
      t.text('conversation_id')
      t.text('usage')
      t.text('cost_usd')
      t.bigint('created_at').notNullable()
      t.bigint('started_at')
      t.bigint('ended_at')
      t.bigint('removed_at').notNullable()
      t.index(['workspace_id', 'created_at', 'id'])
    })
    await tx.schema.createTable('removed_run_logs', (t) => {
      t.text('run_id').primary()
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.bigint('created_at').notNullable()
      t.index(['created_at', 'run_id'])
      t.index(['workspace_id'])
    })
    await tx.raw('create index runs_of_parent on runs (parent_run_id) where parent_run_id is not null')
    await tx.raw('create index task_activity_by_age on task_activity (created_at, seq)')
    await tx.schema.alterTable('file_revisions', (t) => {
      t.bigint('replaced_at')
    })
    await tx.raw(`update file_revisions set replaced_at = (
      select later.created_at from file_revisions later
      where later.file_id = file_revisions.file_id and later.number = file_revisions.number + 1)`)
    await tx.raw(
      `create index file_revisions_replaced on file_revisions (replaced_at, id)
       where replaced_at is not null and blob_id is not null`,
    )
  },
}
