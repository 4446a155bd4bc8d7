import type { Migration } from './migration.ts'

/** Keeps who may cause runs on whose device (docs/trust.md), and which repositories a workspace may reach through the server. */
export const trust: Migration = {
  version: 14,
  name: 'trust',
  async up(tx) {
    await tx.schema.alterTable('agents', (t) => {
      t.bigint('transferred_at')
    })
    await tx.schema.alterTable('devices', (t) => {
      t.text('runs_by').notNullable().defaultTo('members')
    })
    for (const table of ['runs', 'wakes', 'automations'])
      await tx.schema.alterTable(table, (t) => {
        t.text('caused_by_user_id')
      })
    // The cause of earlier work is known where a person asked for it; of automations, their creator set all that they do.
    await tx.raw(`update runs set caused_by_user_id = (select id from users where public_id = runs.requested_by)
      where ended_at is null`)
    await tx.raw(`update wakes set caused_by_user_id = (select id from users where public_id = wakes.requested_by)
      where state = 'waiting'`)
    await tx.raw(`update automations set caused_by_user_id = (select id from users where public_id = created_by_id)
      where created_by_type = 'user'`)
    await tx.schema.createTable('repo_bindings', (t) => {
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('repository').notNullable()
      t.bigint('created_at').notNullable()
      t.primary(['workspace_id', 'repository'])
    })
  },
}
