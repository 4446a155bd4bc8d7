import { dialectOfDb } from '../dialect.ts'
import type { Migration } from './migration.ts'

/** Wakes that were asked for within another change and become runs after it; runs of tasks and conversations. */
export const wakes: Migration = {
  version: 6,
  name: 'wakes',
  async up(tx) {
    await tx.schema.createTable('wakes', (t) => {
      // Orders what came within one millisecond.
      t.bigIncrements('seq')
      t.text('id').notNullable().unique()
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('agent_id').notNullable()
      t.text('trigger_source').notNullable()
      t.text('requested_by')
      t.text('prompt').notNullable()
      t.text('task_id')
      t.text('conversation_id')
      t.text('continues_run_id')
      t.text('allow_calls').notNullable()
      t.text('wake_key')
      t.text('state').notNullable()
      t.text('answer')
      t.bigint('created_at').notNullable()
      t.bigint('taken_at')
      t.unique(['workspace_id', 'wake_key'])
    })
    // Wakes that wait are few beside those that are done.
    await tx.raw("create index wakes_waiting on wakes (created_at, seq) where state = 'waiting'")
    await tx.raw("create index runs_rate_limited on runs (workspace_id, ended_at) where exit_reason = 'rate_limited'")
    // The outbox is read by the transactions that have ended.
    if (dialectOfDb(tx) === 'postgres') await tx.raw('create index outbox_xid on outbox (xid)')
    // The rows are in the order in which they are read, so that wide ones need not be sorted.
    await tx.raw('drop index runs_live_agent')
    await tx.raw('create index runs_live_agent on runs (agent_id, created_at) where ended_at is null')
    await tx.raw('create index runs_of_task on runs (task_id, created_at) where task_id is not null')
    await tx.raw(
      'create index runs_of_conversation on runs (conversation_id, created_at) where conversation_id is not null',
    )
  },
}
