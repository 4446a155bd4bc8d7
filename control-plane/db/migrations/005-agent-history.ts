import type { Migration } from './migration.ts'

/** The history of agents, what they spent in a month and may spend, and when their sessions were reset. */
export const agentHistory: Migration = {
  version: 5,
  name: 'agent-history',
  async up(tx) {
    await tx.schema.createTable('agent_history', (t) => {
      // An entry of kind `config` has the id of its revision.
      t.text('id').primary()
      t.text('agent_id').notNullable().references('agents.id')
      t.text('kind').notNullable()
      t.text('changed_keys').notNullable()
      t.text('description').notNullable()
      t.text('changed_by')
      t.text('reverts')
      t.bigint('created_at').notNullable()
      t.index(['agent_id', 'created_at', 'id'])
    })
    await tx.raw(`
      insert into agent_history (id, agent_id, kind, changed_keys, description, changed_by, created_at)
      select id, agent_id, 'config', changed_keys, coalesce(change_description, ''), changed_by, created_at
      from agent_revisions`)
    await tx.schema.alterTable('agents', (t) => {
      // Instead of `spent_monthly_cents`, which nothing reads any more: a sum is of one month, and cents are too coarse.
      t.text('spent_month')
      t.bigint('spent_nano_usd').notNullable().defaultTo(0)
      t.bigint('monthly_budget_cents')
      t.bigint('sessions_reset_at')
    })
    await tx.schema.alterTable('workspaces', (t) => {
      t.bigint('monthly_budget_cents')
    })
  },
}
