import { z } from 'zod'
import { text, time } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { command, query } from '../../db/statement.ts'

/** An account (see `accountOf`) that a provider's limit keeps from being used until `resetsAt`. */
export interface QuotaWindow {
  account: string
  resetsAt: number
}

const close = command(
  `insert into quota_windows (workspace_id, account, resets_at) values (?, ?, ?)
   on conflict (workspace_id, account) do update set resets_at = excluded.resets_at
   where quota_windows.resets_at < excluded.resets_at`,
)

/** Several runs may reach one limit; the latest reset that was told counts. */
export async function closeQuota(db: Db, { workspaceId, account, resetsAt }: QuotaWindow & { workspaceId: string }) {
  await close(db, [workspaceId, account, resetsAt])
}

const ofWorkspace = query(
  'select account, resets_at from quota_windows where workspace_id = ? and resets_at > ? order by account',
  z
    .object({ account: text, resets_at: time })
    .transform((row): QuotaWindow => ({ account: row.account, resetsAt: row.resets_at })),
)

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
