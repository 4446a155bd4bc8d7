import { z } from 'zod'
import { int, text, time } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { command, query } from '../../db/statement.ts'
import { table, type RowOf } from '../../db/table.ts'

const circuits = table('provider_circuits', {
  workspaceId: text,
  device: text,
  provider: text,
  times: int,
  openedAt: time,
  openUntil: time,
})
type CircuitRow = RowOf<typeof circuits>

export async function replaceCircuit(db: Db, circuit: CircuitRow): Promise<void> {
  await db('provider_circuits')
    .insert(circuits.toColumns(circuit))
    .onConflict(['workspace_id', 'device', 'provider'])
    .merge()
}

const one = circuits.query('where workspace_id = ? and device = ? and provider = ?')

export const findCircuit = (
  db: Db,
  of: { workspaceId: string; device: string; provider: string },
): Promise<CircuitRow | null> => one.first(db, [of.workspaceId, of.device, of.provider])

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
