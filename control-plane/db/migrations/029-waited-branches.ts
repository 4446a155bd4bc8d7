import type { Migration } from './migration.ts'

/** An index by which the waits on a branch are found, whatever else is open. */
export const waitedBranches: Migration = {
  version: 29,
  name: 'waited-branches',
  async up(tx) {
    await tx.raw(
      'create index workflow_calls_waited on workflow_calls (repo, branch, deadline_at) where repo is not null and ended_at is null',
    )
  },
}
