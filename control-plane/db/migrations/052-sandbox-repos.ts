import type { Migration } from './migration.ts'

/** Adds the address from which a repository is cloned, and the repository that a cloud run works on. */
export const sandboxRepos: Migration = {
  version: 52,
  name: 'sandbox-repos',
  async up(tx) {
    await tx.schema.alterTable('repos', (t) => {
      t.text('clone_url')
    })
    await tx.schema.alterTable('runs', (t) => {
      t.text('repo_id')
    })
  },
}
