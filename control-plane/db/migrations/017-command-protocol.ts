import type { Migration } from './migration.ts'

/** Keeps how an agent's own command is spoken to. */
export const commandProtocol: Migration = {
  version: 17,
  name: 'command-protocol',
  async up(tx) {
    await tx.schema.alterTable('agents', (t) => {
      t.text('protocol')
    })
  },
}
