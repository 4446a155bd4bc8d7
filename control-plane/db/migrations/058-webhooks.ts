import type { Migration } from './migration.ts'

/** Webhooks, the events that wait to be made into deliveries, and deliveries. */
export const webhooks: Migration = {
  version: 58,
  name: 'webhooks',
  async up(tx) {
    await tx.schema.createTable('webhooks', (t) => {
      t.text('id').primary()
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('url').notNullable()
      t.text('events').notNullable()
      t.text('form').notNullable()
      t.text('description').notNullable()
      t.text('status').notNullable()
      t.text('disabled_reason')
      t.binary('secret').notNullable()
      t.binary('old_secret')
      t.bigint('old_secret_until')
      t.bigint('failing_since')
      t.text('created_by').notNullable()
      t.integer('version').notNullable().defaultTo(1)
      t.bigint('created_at').notNullable()
      t.bigint('updated_at').notNullable()
      t.index(['workspace_id', 'created_at', 'id'])
    })
    await tx.schema.createTable('webhook_events', (t) => {
      t.text('id').primary()
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('type').notNullable()
      t.text('subject_id').notNullable()
      t.text('change')
      t.bigint('created_at').notNullable()
      t.bigint('due_at').notNullable()
      t.index(['due_at', 'id'])
      t.index(['workspace_id'])
    })
    await tx.schema.createTable('webhook_deliveries', (t) => {
      t.text('id').primary()
      t.text('webhook_id').notNullable().references('webhooks.id')
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('event_id').notNullable()
      t.text('event_type').notNullable()
      t.text('payload').notNullable()
      t.text('status').notNullable()
      t.integer('attempts').notNullable()
      t.bigint('due_at')
      t.bigint('last_attempt_at')
      t.integer('duration_ms')
      t.integer('response_status')
      t.text('response_body')
      t.text('error')
      t.text('redelivery_of')
      t.bigint('created_at').notNullable()
      t.index(['webhook_id', 'created_at', 'id'])
      t.index(['webhook_id', 'status', 'created_at', 'id'])
      t.index(['workspace_id'])
      t.index(['created_at'])
    })
    await tx.raw(
      'create index webhook_deliveries_due on webhook_deliveries (webhook_id, due_at, id) where due_at is not null',
    )
  },
}
