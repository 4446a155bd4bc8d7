import type { Migration } from './migration.ts'

/**
 * Keeps what a sign-in needs for minutes: grants of the device flow, one-time links, sign-ins at an issuer under way, and how
 * many codes a person has tried. Only who is who at the issuer stays.
 */
export const signIn: Migration = {
  version: 4,
  name: 'sign-in',
  async up(tx) {
    await tx.schema.createTable('device_grants', (t) => {
      t.text('id').primary()
      t.text('device_code_hash').notNullable().unique()
      t.text('user_code_hash').notNullable().unique()
      t.text('client_name').notNullable()
      t.text('address').notNullable()
      t.text('status').notNullable()
      t.text('user_id')
      t.text('workspace_id')
      t.bigint('interval_ms').notNullable()
      t.bigint('last_polled_at')
      t.bigint('created_at').notNullable()
      t.bigint('expires_at').notNullable().index()
    })
    await tx.schema.createTable('sign_in_links', (t) => {
      t.text('id').primary()
      t.text('token_hash').notNullable().unique()
      t.text('user_id').notNullable()
      t.text('workspace_id')
      t.bigint('created_at').notNullable()
      t.bigint('expires_at').notNullable().index()
      t.bigint('used_at')
    })
    await tx.schema.createTable('oidc_attempts', (t) => {
      t.text('state_hash').primary()
      t.text('browser_hash').notNullable()
      t.text('code_verifier').notNullable()
      t.text('nonce').notNullable()
      t.bigint('expires_at').notNullable().index()
    })
    await tx.schema.createTable('oidc_identities', (t) => {
      t.text('issuer').notNullable()
      t.text('subject').notNullable()
      t.text('user_id').notNullable().index()
      t.bigint('created_at').notNullable()
      t.primary(['issuer', 'subject'])
    })
    await tx.schema.createTable('code_guesses', (t) => {
      t.text('user_id').primary()
      t.integer('count').notNullable()
      t.bigint('since').notNullable().index()
    })
    // The workspace a session acts in when a request names none; null: the first joined.
    await tx.schema.alterTable('dashboard_sessions', (t) => {
      t.text('workspace_id')
    })
  },
}
