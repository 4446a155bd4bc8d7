import type { Knex } from 'knex'
import type { Migration } from './migration.ts'

/** Stored programs, their runs, and the journal of each: the calls its program made and what they came to. */
export const workflows: Migration = {
  version: 20,
  name: 'workflows',
  async up(tx) {
    await records(tx)
    await runs(tx)
    await calls(tx)
    await tx.schema.alterTable('runs', (t) => {
      t.text('workflow_run_id')
      t.integer('workflow_call')
    })
    await addToQuestions(tx)
    await tx.schema.alterTable('automation_fires', (t) => {
      t.text('workflow_run_id').index()
    })
    await tx.schema.alterTable('automations', (t) => {
      t.text('last_workflow_run_id')
    })
    await tx.raw(
      'create index runs_of_workflow on runs (workflow_run_id, workflow_call) where workflow_run_id is not null',
    )
  },
}

/** Adds the call of a question that a workflow asks; without a call, the question is what to do about a stall. */
export async function addToQuestions(tx: Knex.Transaction): Promise<void> {
  await tx.schema.alterTable('questions', (t) => {
    t.text('workflow_run_id')
    t.integer('workflow_call')
  })
  await tx.raw('create index questions_of_workflow on questions (workflow_run_id) where workflow_run_id is not null')
}

async function records(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('workflows', (t) => {
    t.text('id').primary()
    t.text('workspace_id').notNullable().references('workspaces.id')
    t.text('name').notNullable()
    t.text('title').notNullable()
    t.text('description')
    t.text('inputs').notNullable()
    t.text('tool_permission_mode').notNullable()
    t.text('source').notNullable()
    t.integer('version').notNullable()
    t.integer('revision').notNullable().defaultTo(1)
    t.text('author_agent_id')
    t.text('written_by')
    t.text('caused_by_user_id')
    t.bigint('retired_at')
    t.bigint('created_at').notNullable()
    t.bigint('updated_at').notNullable()
    t.unique(['workspace_id', 'name'])
    t.index(['workspace_id', 'created_at', 'id'])
  })
}

async function runs(tx: Knex.Transaction): Promise<void> {
  // Programs that runs were started with: in-flight runs keep theirs, and runs of one program share it.
  await tx.schema.createTable('workflow_programs', (t) => {
    t.text('workspace_id').notNullable()
    t.text('digest').notNullable()
    t.text('source').notNullable()
    t.primary(['workspace_id', 'digest'])
  })
  await tx.schema.createTable('workflow_runs', (t) => {
    t.text('id').primary()
    t.text('workspace_id').notNullable().references('workspaces.id')
    t.text('workflow').notNullable()
    t.text('workflow_id')
    t.text('program_digest').notNullable()
    t.text('input').notNullable()
    t.text('tool_permission_mode').notNullable()
    t.text('status').notNullable()
    t.text('summary')
    t.text('error')
    t.text('log').notNullable()
    t.text('task_id')
    t.text('agent_id')
    t.text('started_by')
    t.text('written_by')
    t.text('caused_by_user_id')
    t.bigint('replayed_at')
    t.bigint('retried_at')
    t.text('stall')
    t.integer('journal_bytes').notNullable().defaultTo(0)
    t.bigint('cancel_requested_at')
    t.integer('version').notNullable().defaultTo(1)
    t.bigint('created_at').notNullable()
    t.bigint('changed_at').notNullable()
    t.bigint('completed_at')
    t.index(['workspace_id', 'created_at', 'id'])
    t.index(['workspace_id', 'workflow', 'created_at'])
    t.index(['status', 'changed_at'])
  })
}

async function calls(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('workflow_calls', (t) => {
    t.text('workflow_run_id').notNullable().references('workflow_runs.id')
    // The number of the call, from 0; steps have one of their own beside it.
    t.integer('seq').notNullable()
    t.integer('step_ordinal')
    t.text('kind').notNullable()
    t.text('args').notNullable()
    t.text('digest').notNullable()
    t.text('agent_id')
    t.bigint('dispatched_at').notNullable()
    t.bigint('ended_at')
    t.integer('is_value')
    t.text('result')
    t.integer('handed_order')
    t.integer('resume_attempts').notNullable().defaultTo(0)
    t.bigint('resumed_at')
    t.bigint('advanced_at')
    t.text('ran_in')
    t.text('question_id')
    t.text('branch')
    t.text('repo')
    t.bigint('deadline_at')
    t.text('checks')
    t.primary(['workflow_run_id', 'seq'])
  })
  await tx.raw('create index workflow_calls_open on workflow_calls (dispatched_at) where advanced_at is null')
}
