import { z } from 'zod'
import { text, time } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { command, query } from '../../db/statement.ts'
import { table, type RowOf } from '../../db/table.ts'

/** An account (see `accountOf`) that a provider's limit keeps from being used until `resetsAt`. */
const windows = table('quota_windows', { workspaceId: text, account: text, resetsAt: time })
export type QuotaWindow = RowOf<typeof windows>

/** Several runs may reach one limit; the latest reset that was told counts. */
export async function closeQuota(db: Db, window: QuotaWindow): Promise<void> {
  await db('quota_windows')
    .insert(windows.toColumns(window))
    .onConflict(['workspace_id', 'account'])
    .merge()
    .where('quota_windows.resets_at', '<', window.resetsAt)
}

const ofWorkspace = windows.query('where workspace_id = ? and resets_at > ? order by account')

/** Lists the windows that reset after `since`. */
export const listQuotaWindows = (db: Db, workspaceId: string, since: number): Promise<QuotaWindow[]> =>
  ofWorkspace.list(db, [workspaceId, since])

const reset = query(
  'select distinct workspace_id from quota_windows where resets_at > ? and resets_at <= ?',
  z.object({ workspace_id: text }),
)

/** Workspaces of which an account was reset between the two times. */
export async function listWorkspacesWithReset(db: Db, from: number, to: number): Promise<string[]> {
  return (await reset.list(db, [from, to])).map((row) => row.workspace_id)
}

const remove = command('delete from quota_windows where resets_at < ?')

export async function removeQuotasBefore(db: Db, before: number): Promise<void> {
  await remove(db, [before])
}
