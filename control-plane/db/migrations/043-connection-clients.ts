import type { Migration } from './migration.ts'

/** Adds this server's clients at issuers where people sign in to MCP servers; the sign-ins to one server are found together. */
export const connectionClients: Migration = {
  version: 43,
  name: 'connection-clients',
  async up(tx) {
    await tx.schema.createTable('connection_clients', (t) => {
      t.text('id').primary()
      t.text('workspace_id').notNullable().references('workspaces.id')
      t.text('issuer').notNullable()
      t.text('client_id').notNullable()
      t.text('source').notNullable()
      t.binary('client_secret')
      t.text('client_auth')
      t.text('redirect_uri').notNullable()
      t.bigint('secret_expires_at')
      t.bigint('created_at').notNullable()
      t.unique(['workspace_id', 'issuer', 'client_id'])
    })
    await tx.raw('create index connections_of_service on connections (workspace_id, service_id)')
  },
}
