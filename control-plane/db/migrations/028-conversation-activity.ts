import type { Migration } from './migration.ts'

/** The order in which conversations are listed. The last release still lists them by the index on the time of their start. */
export const conversationActivity: Migration = {
  version: 28,
  name: 'conversation-activity',
  async up(tx) {
    await tx.raw(
      `create index conversations_by_activity on conversations (workspace_id, coalesce(last_activity_at, created_at), id)`,
    )
  },
}
