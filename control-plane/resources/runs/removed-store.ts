import type { RunId } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { runId } from '../../db/id-columns.ts'
import { deleteSome } from '../../db/dialect.ts'
import type { Db } from '../../db/open.ts'
import { command, query } from '../../db/statement.ts'

/**
 * What is left of runs that were removed for their age: a short row with what they cost, for sums over months, and for a while their
 * events, which are many rows and go after the run that they belong to.
 *
 *   ended run --the transaction that removes it--> row of `removed_runs`, and of `removed_run_logs`
 *   row of `removed_run_logs` --batch, batch, ...--> (none), and no events
 */
const copied = `id, workspace_id, agent_id, task_id, task_key, task_title, conversation_id, usage, cost_usd, created_at,
  started_at, ended_at`
const keepCosts = command(
  `insert into removed_runs (${copied}, removed_at) select ${copied}, cast(? as bigint) from runs where id in ? and ended_at is not null`,
)
const markLogs = command(
  `insert into removed_run_logs (run_id, workspace_id, created_at)
   select id, workspace_id, cast(? as bigint) from runs where id in ? and ended_at is not null`,
)

/** Keeps what the runs cost, and marks their events as those to remove; called before the rows of the runs go. */
export async function insertRemovedRuns(db: Db, ids: readonly RunId[], now: number): Promise<void> {
  await keepCosts(db, [now, ids])
  await markLogs(db, [now, ids])
}

const marked = query(
  'select run_id from removed_run_logs order by created_at, run_id limit ?',
  z.object({ run_id: runId }),
)

/** Lists removed runs whose events are there still, longest removed first. */
export async function listRemovedLogs(db: Db, limit: number): Promise<RunId[]> {
  return (await marked.list(db, [limit])).map(({ run_id: id }) => id)
}

/** Tables of events, of which a row may have 16 MB; the order has PostgreSQL take the index, however many there are. */
const logs = { run_frames: 'first_seq', run_evidence: 'run_id' } as const

/** Removes some rows of a removed run's events, last the mark. Returns whether there are more. */
export async function removeSomeOfLog(db: Db, id: RunId, limit: number): Promise<boolean> {
  for (const [table, order] of Object.entries(logs)) {
    const rows = db(table).where({ run_id: id }).orderBy(order)
    if ((await deleteSome(db, table, { rows, limit })) === limit) return true
  }
  await db('removed_run_logs').where({ run_id: id }).delete()
  return false
}
