import type { Migration } from './migration.ts'

/** Adds the time at which a session was used last: one that is not used for long ends. */
export const sessionUse: Migration = {
  version: 15,
  name: 'session-use',
  async up(tx) {
    await tx.schema.alterTable('dashboard_sessions', (t) => {
      t.bigint('last_used_at')
      t.index(['user_id'])
    })
    await tx.schema.alterTable('login_tokens', (t) => {
      t.index(['user_id'])
    })
  },
}
