import type { Knex } from 'knex'
import type { Migration } from './migration.ts'

/** Automations, what became of each of their fires, and the deliveries of the git host. */
export const automations: Migration = {
  version: 10,
  name: 'automations',
  async up(tx) {
    await automationRows(tx)
    await fires(tx)
    await deliveries(tx)
  },
}

async function automationRows(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('automations', (t) => {
    t.text('id').primary()
    t.text('workspace_id').notNullable().references('workspaces.id')
    t.text('project_id')
    t.text('name').notNullable()
    t.text('description')
    t.text('status').notNullable()
    t.text('trigger_type').notNullable()
    t.text('cron')
    t.text('timezone')
    t.text('event')
    t.text('repo')
    t.text('token_hash').unique()
    t.text('prompt').notNullable()
    t.text('workflow')
    t.text('agent_id').notNullable().references('agents.id').index()
    t.text('model_id')
    t.text('environment')
    t.text('concurrency_policy').notNullable()
    t.text('created_by_type').notNullable()
    t.text('created_by_id')
    t.text('last_run_id')
    t.bigint('last_fired_at')
    // The next instant of the schedule; null for other triggers.
    t.bigint('next_fire_at')
    // Calls of the webhook in the hour that began then.
    t.bigint('calls_since')
    t.integer('calls').notNullable().defaultTo(0)
    t.bigint('archived_at')
    t.integer('version').notNullable().defaultTo(1)
    t.bigint('created_at').notNullable()
    t.bigint('updated_at').notNullable()
    t.index(['workspace_id', 'created_at', 'id'])
    t.index(['next_fire_at', 'id'])
    t.index(['repo', 'event'])
  })
}

async function fires(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('automation_fires', (t) => {
    t.text('id').primary()
    t.text('automation_id').notNullable().references('automations.id')
    t.text('workspace_id').notNullable()
    t.text('kind').notNullable()
    t.text('reason')
    t.text('message')
    t.text('run_id').index()
    // The cause of the fire, when that may fire it once only: an instant, a merge, a head.
    t.text('occasion')
    t.text('body_hash')
    t.bigint('created_at').notNullable()
    t.unique(['automation_id', 'occasion'])
    t.index(['automation_id', 'kind', 'created_at', 'id'])
    t.index(['workspace_id', 'kind', 'created_at', 'id'])
    t.index(['automation_id', 'body_hash'])
    t.index(['kind', 'created_at'])
  })
}

async function deliveries(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('github_deliveries', (t) => {
    // X-GitHub-Delivery.
    t.text('id').primary()
    t.text('happening').notNullable()
    t.text('state').notNullable()
    t.integer('attempts').notNullable().defaultTo(0)
    t.bigint('due_at').notNullable()
    t.text('trouble')
    t.bigint('created_at').notNullable()
    t.index(['state', 'due_at', 'id'])
    t.index(['created_at'])
  })
}
