import type { Migration } from './migration.ts'

/** What people want mail about, and mail that waits to be sent. */
export const mail: Migration = {
  version: 59,
  name: 'mail',
  async up(tx) {
    await tx.schema.createTable('mail_settings', (t) => {
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('user_id').notNullable().references('users.id')
      t.text('events').notNullable()
      t.text('about').notNullable()
      t.bigint('due_at')
      t.integer('attempts').notNullable().defaultTo(0)
      t.bigint('sent_at')
      t.text('error')
      t.integer('version').notNullable().defaultTo(1)
      t.bigint('created_at').notNullable()
      t.bigint('updated_at').notNullable()
      t.primary(['workspace_id', 'user_id'])
    })
    await tx.raw('create index mail_settings_due on mail_settings (due_at) where due_at is not null')
    await tx.schema.createTable('mails', (t) => {
      t.text('id').primary()
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('user_id').notNullable().references('users.id')
      t.text('subject').notNullable()
      t.text('body').notNullable()
      t.bigint('created_at').notNullable()
      t.index(['workspace_id', 'user_id', 'created_at', 'id'])
      t.index(['created_at'])
    })
  },
}
