import type { Migration } from './migration.ts'

/** Adds who signed in to a connection last: their word decides which agents are given it without being asked. */
export const connectedBy: Migration = {
  version: 47,
  name: 'connected-by',
  async up(tx) {
    await tx.schema.alterTable('connections', (t) => {
      t.text('connected_by_user_id')
    })
    await tx('connections').update({ connected_by_user_id: tx.ref('created_by_user_id') })
  },
}
