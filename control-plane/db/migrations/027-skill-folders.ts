import type { Migration } from './migration.ts'

/** Keeps the folders of skills that an agent's runs are given. */
export const skillFolders: Migration = {
  version: 27,
  name: 'skill-folders',
  async up(tx) {
    await tx.schema.alterTable('agents', (t) => {
      t.text('skill_folders')
    })
  },
}
