import type { Knex } from 'knex'
import type { Migration } from './migration.ts'

/** Conversations, who is in them and has read how far, and their messages with what these said before. */
export const conversations: Migration = {
  version: 8,
  name: 'conversations',
  async up(tx) {
    await conversationTables(tx)
    await messageTables(tx)
  },
}

async function conversationTables(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('conversations', (t) => {
    t.text('id').primary()
    t.text('workspace_id').notNullable().references('workspaces.id')
    t.text('kind').notNullable()
    t.text('title')
    t.text('task_id').unique()
    // Set for a dm that belongs to no task: there is one per agent and person.
    t.text('dm_user')
    t.text('dm_agent')
    t.text('created_by_type').notNullable()
    t.text('created_by_id')
    // Numbers messages; raised by whoever posts, which also makes posts of one conversation follow one another.
    t.bigint('message_seq').notNullable().defaultTo(0)
    t.bigint('message_count').notNullable().defaultTo(0)
    t.text('last_message_id')
    t.text('last_message_preview')
    t.bigint('last_activity_at')
    t.bigint('archived_at')
    t.text('model_id')
    t.text('harness')
    t.text('reasoning_effort')
    t.text('speed')
    t.bigint('runtime_changed_at')
    t.integer('version').notNullable().defaultTo(1)
    t.bigint('created_at').notNullable()
    t.bigint('updated_at').notNullable()
    t.unique(['workspace_id', 'dm_user', 'dm_agent'])
    t.index(['workspace_id', 'created_at', 'id'])
  })
  await tx.schema.createTable('conversation_participants', (t) => {
    t.text('conversation_id').notNullable().references('conversations.id')
    t.text('type').notNullable()
    // `usr_` or `agt_` id.
    t.text('subject_id').notNullable()
    t.bigint('created_at').notNullable()
    t.primary(['conversation_id', 'type', 'subject_id'])
    t.index(['subject_id', 'conversation_id'])
  })
  await tx.schema.createTable('conversation_reads', (t) => {
    t.text('conversation_id').notNullable().references('conversations.id')
    t.text('user_id').notNullable()
    t.bigint('read_seq').notNullable()
    t.bigint('read_at').notNullable()
    t.primary(['conversation_id', 'user_id'])
  })
}

async function messageTables(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('messages', (t) => {
    t.text('id').primary()
    t.text('conversation_id').notNullable().references('conversations.id')
    t.bigint('seq').notNullable()
    t.text('author_type').notNullable()
    t.text('author_id')
    t.text('body').notNullable()
    t.text('source').notNullable()
    t.text('external_ref')
    t.text('automation_id')
    t.text('mentions').notNullable()
    t.text('parent_message_id')
    t.text('attachment_ids').notNullable()
    // The run whose last words these are: said once, however often the ending is told.
    t.text('reply_of_run').unique()
    // The run that was started to answer this message at once, and the key it was sent with.
    t.text('turn_run')
    t.text('send_key')
    t.bigint('edited_at')
    t.bigint('deleted_at')
    t.bigint('created_at').notNullable()
    t.bigint('updated_at').notNullable()
    t.unique(['conversation_id', 'seq'])
    t.unique(['conversation_id', 'author_id', 'send_key'])
  })
  await tx.schema.createTable('message_edits', (t) => {
    t.text('message_id').notNullable().references('messages.id')
    t.text('conversation_id').notNullable().references('conversations.id').index()
    t.integer('edit').notNullable()
    t.text('body').notNullable()
    t.bigint('replaced_at').notNullable()
    t.primary(['message_id', 'edit'])
  })
}
