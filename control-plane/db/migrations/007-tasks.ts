import type { Knex } from 'knex'
import type { Migration } from './migration.ts'

/** Tasks with their checklists, dependencies, watchers, activity and read marks; repos that tasks and folders name. */
export const tasksMigration: Migration = {
  version: 7,
  name: 'tasks',
  async up(tx) {
    await repos(tx)
    await taskTable(tx)
    await partsOfTasks(tx)
  },
}

async function repos(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('repos', (t) => {
    t.text('id').primary()
    t.text('workspace_id').notNullable().references('workspaces.id')
    t.text('name').notNullable()
    t.text('git_remote').notNullable()
    t.text('default_branch')
    t.text('provider').notNullable()
    t.text('host').notNullable()
    t.bigint('created_at').notNullable()
    t.unique(['workspace_id', 'git_remote'])
  })
}

async function taskTable(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('tasks', (t) => {
    t.text('id').primary()
    t.text('workspace_id').notNullable().references('workspaces.id')
    t.text('key').notNullable()
    t.text('project_id')
    t.text('parent_task_id')
    t.text('goal_id')
    t.text('workflow_ref')
    t.text('title').notNullable()
    // The words of the title by which likely duplicates are found.
    t.text('title_words').notNullable()
    t.text('description')
    t.text('status').notNullable()
    t.text('assignee_agent_id')
    t.text('priority').notNullable()
    t.bigint('due_at')
    t.bigint('start_at')
    // The time at which the sweep wakes the assignee for a scheduled start; null once that is done or not needed.
    t.bigint('wake_at')
    t.text('branch_name')
    t.text('repo_id')
    t.text('base_branch')
    t.text('pull_request')
    t.text('environment')
    t.text('harness')
    t.text('model_id')
    t.text('reasoning_effort')
    t.text('sandbox_size')
    t.text('created_by_type').notNullable()
    t.text('created_by_id')
    t.bigint('started_at')
    t.bigint('completed_at')
    t.bigint('cancelled_at')
    t.bigint('archived_at')
    t.integer('version').notNullable().defaultTo(1)
    t.bigint('created_at').notNullable()
    t.bigint('updated_at').notNullable()
    t.unique(['workspace_id', 'key'])
    t.index(['workspace_id', 'created_at', 'id'])
    t.index(['workspace_id', 'status', 'created_at', 'id'])
    t.index(['parent_task_id'])
    t.index(['assignee_agent_id', 'status'])
    t.index(['workspace_id', 'branch_name'])
  })
  await tx.raw('create index tasks_wake_at on tasks (wake_at) where wake_at is not null')
}

async function partsOfTasks(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('task_checklist_items', (t) => {
    t.text('id').primary()
    t.text('task_id').notNullable().references('tasks.id')
    t.text('text').notNullable()
    t.integer('done').notNullable()
    t.integer('position').notNullable()
    t.bigint('completed_at')
    t.text('completed_by_type')
    t.text('completed_by_id')
    t.bigint('archived_at')
    t.bigint('created_at').notNullable()
    t.bigint('updated_at').notNullable()
    t.index(['task_id', 'position'])
  })
  await tx.schema.createTable('task_dependencies', (t) => {
    t.text('task_id').notNullable().references('tasks.id')
    t.text('depends_on_task_id').notNullable().references('tasks.id').index()
    t.text('type').notNullable()
    t.bigint('created_at').notNullable()
    t.primary(['task_id', 'depends_on_task_id'])
  })
  await tx.schema.createTable('task_watchers', (t) => {
    t.text('task_id').notNullable().references('tasks.id')
    t.text('subject_type').notNullable()
    t.text('subject_id').notNullable()
    t.text('added_by').notNullable()
    t.text('origin')
    t.bigint('created_at').notNullable()
    t.primary(['task_id', 'subject_type', 'subject_id'])
  })
  await tx.schema.createTable('task_activity', (t) => {
    t.bigIncrements('seq')
    t.text('id').notNullable().unique()
    t.text('task_id').notNullable().references('tasks.id')
    t.text('source').notNullable()
    t.text('kind').notNullable()
    t.text('actor_type').notNullable()
    t.text('actor_id')
    t.text('data').notNullable()
    t.bigint('created_at').notNullable()
    t.index(['task_id', 'source', 'seq'])
  })
  await tx.schema.createTable('task_reads', (t) => {
    t.text('task_id').notNullable().references('tasks.id')
    t.text('reader_type').notNullable()
    t.text('reader_id').notNullable()
    t.bigint('last_read_at').notNullable()
    t.primary(['task_id', 'reader_type', 'reader_id'])
  })
}
