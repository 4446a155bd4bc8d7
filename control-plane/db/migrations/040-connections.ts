import type { Migration } from './migration.ts'

/** Connections to outside services, and the sign-ins to them that were begun. */
export const connections: Migration = {
  version: 40,
  name: 'connections',
  async up(tx) {
    await tx.schema.createTable('connections', (t) => {
      t.text('id').primary()
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('service_id').notNullable()
      t.text('service_label').notNullable()
      t.text('auth_kind').notNullable()
      t.text('owner_user_id')
      t.text('account_label').notNullable()
      t.text('sort_label').notNullable()
      t.text('status').notNullable()
      t.text('status_reason')
      t.text('granted_scopes').notNullable()
      t.text('field_names').notNullable()
      t.binary('credential')
      t.integer('credential_version').notNullable()
      t.bigint('expires_at')
      t.bigint('lapses_at')
      t.text('renewed_by')
      t.bigint('renewed_until')
      t.bigint('last_used_at').notNullable()
      t.text('created_by_user_id').notNullable()
      t.integer('version').notNullable().defaultTo(1)
      t.bigint('created_at').notNullable()
      t.bigint('updated_at').notNullable()
      t.index(['workspace_id', 'created_at', 'id'])
      t.index(['workspace_id', 'last_used_at', 'id'])
    })
    await tx.raw(
      'create unique index connections_of_company on connections (workspace_id, service_id, account_label) where owner_user_id is null',
    )
    await tx.raw(
      'create unique index connections_of_user on connections (workspace_id, owner_user_id, service_id, account_label) where owner_user_id is not null',
    )
    await tx.raw('create index connections_lapsing on connections (lapses_at, id) where lapses_at is not null')
    await tx.schema.createTable('connection_sign_ins', (t) => {
      t.text('state_hash').primary()
      t.text('connection_id').notNullable().unique().references('connections.id')
      t.text('user_id').notNullable()
      t.binary('attempt').notNullable()
      t.bigint('claimed_at')
      t.bigint('expires_at').notNullable()
    })
  },
}
