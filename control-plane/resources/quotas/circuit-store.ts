import { z } from 'zod'
import { int, text, time } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { command, query } from '../../db/statement.ts'
import type { Circuit } from './circuit-rules.ts'

const write = command(
  `insert into provider_circuits (workspace_id, device, provider, times, opened_at, open_until) values (?, ?, ?, ?, ?, ?)
   on conflict (workspace_id, device, provider) do update
     set times = excluded.times, opened_at = excluded.opened_at, open_until = excluded.open_until`,
)

export async function replaceCircuit(
  db: Db,
  { workspaceId, device, provider, times, openedAt, openUntil }: Circuit & { workspaceId: string },
): Promise<void> {
  await write(db, [workspaceId, device, provider, times, openedAt, openUntil])
}

const one = query(
  `select device, provider, times, opened_at, open_until from provider_circuits
   where workspace_id = ? and device = ? and provider = ?`,
  z
    .object({ device: text, provider: text, times: int, opened_at: time, open_until: time })
    .transform((row): Circuit => ({
      device: row.device,
      provider: row.provider,
      times: row.times,
      openedAt: row.opened_at,
      openUntil: row.open_until,
    })),
)

export const findCircuit = (
  db: Db,
  of: { workspaceId: string; device: string; provider: string },
): Promise<Circuit | null> => one.first(db, [of.workspaceId, of.device, of.provider])

const opened = query(
  'select distinct workspace_id from provider_circuits where open_until > ? and open_until <= ?',
  z.object({ workspace_id: text }),
)

/** Workspaces of which a breaker was open until a time between the two. */
export async function listWorkspacesWithTrial(db: Db, from: number, to: number): Promise<string[]> {
  return (await opened.list(db, [from, to])).map((row) => row.workspace_id)
}

const remove = command('delete from provider_circuits where open_until < ?')

export async function removeCircuitsBefore(db: Db, before: number): Promise<void> {
  await remove(db, [before])
}
