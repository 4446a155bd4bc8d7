import type { AutomationId, RunId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { cellOf } from '../../db/reads.ts'
import { onlyVisibleWork, type WorkViewer } from '../projects/work-visibility.ts'
import type { Knex } from 'knex'
import { z } from 'zod'
import { fireSkipReasons } from '../../../shared/api/automation-fields.ts'
import { nullableText, text, time } from '../../db/columns.ts'
import { automationId, runId, workflowRunId, workspaceUuid } from '../../db/id-columns.ts'
import { deleteInBatches } from '../../db/dialect.ts'
import { newestFirst, type OlderPage } from '../../db/id-page.ts'
import type { Db } from '../../db/open.ts'
import { query } from '../../db/statement.ts'
import { onlyOfStatuses } from '../runs/list-store.ts'
import { table, type RowOf } from '../../db/table.ts'

// The result of each fire: a run (`triggered`), or none with the reason (`skipped`).

const fires = table('automation_fires', {
  id: text,
  automationId,
  workspaceId: workspaceUuid,
  kind: z.enum(['triggered', 'skipped']),
  reason: z.enum(fireSkipReasons).nullable(),
  message: nullableText,
  runId: runId.nullable(),
  /** The workflow run (`flr_`) that it started instead of a run. */
  workflowRunId: workflowRunId.nullable(),
  /** The cause, if it may fire the automation only once: an instant, a merge, a head. */
  occasion: nullableText,
  /** SHA-256 of the body of a webhook's call. */
  bodyHash: nullableText,
  createdAt: time,
})
export type FireRow = RowOf<typeof fires>

/** Throws the database's unique violation when the occasion has fired the automation already. */
export async function insertFire(db: Db, fire: FireRow): Promise<void> {
  await fires.insert(db, fire)
}

export async function hasFired(db: Db, automationId: AutomationId, occasion: string): Promise<boolean> {
  return (await db('automation_fires').where({ automation_id: automationId, occasion }).first('id')) !== undefined
}

/** The latest run that a call with this body started after `since`; null when there is none. */
export async function findRunOfBody(
  db: Db,
  call: { automationId: AutomationId; bodyHash: string; since: number },
): Promise<RunId | null> {
  return cellOf(
    db('automation_fires')
      .where({ automation_id: call.automationId, body_hash: call.bodyHash, kind: 'triggered' })
      .whereNotNull('run_id')
      .where('created_at', '>', call.since)
      .orderBy('created_at', 'desc'),
    'run_id',
    runId,
  )
}

const automationOfRun = query(
  `select automation_id from automation_fires where run_id = ?
   union all
   select f.automation_id from runs r join automation_fires f on f.workflow_run_id = r.workflow_run_id where r.id = ?`,
  z.object({ automation_id: automationId }),
)

/** The automation that started this run, or the workflow of which it is a step; null: none did. */
export const findAutomationOfRun = async (db: Db, runId: RunId): Promise<AutomationId | null> =>
  (await automationOfRun.first(db, [runId, runId]))?.automation_id ?? null

/** Returns whether a run that the automation started is queued or running, or a workflow run of it has not ended. */
export async function hasLiveRun(db: Db, of: { id: AutomationId; workspaceId: WorkspaceUuid }): Promise<boolean> {
  // Goes from the live runs, which are few, to their fires.
  const isAnyOf = async (live: Knex.QueryBuilder, isOfFire: string) => {
    const fire = db('automation_fires').select('automation_fires.id').whereRaw(isOfFire).where({ automation_id: of.id })
    return (await live.where({ workspace_id: of.workspaceId }).whereExists(fire).first('id')) !== undefined
  }
  const workflowRuns = db('workflow_runs').whereNull('completed_at')
  return (
    (await isAnyOf(db('runs').whereNull('ended_at'), 'automation_fires.run_id = runs.id')) ||
    isAnyOf(workflowRuns, 'automation_fires.workflow_run_id = workflow_runs.id')
  )
}

/** Lists fires without a run, newest first; returns one row more than `limit`. */
export async function listSkips(db: Db, automationId: AutomationId, page: OlderPage): Promise<FireRow[]> {
  const query = fires.from(db).where({ automation_id: automationId, kind: 'skipped' })
  return fires.list(newestFirst(query, page))
}

export interface FiredRunFilter extends OlderPage {
  workspaceId: WorkspaceUuid
  /** Left out: all automations. */
  automationId?: AutomationId
  statuses?: readonly string[]
  /** The viewer whose visible runs are listed; left out: all runs. */
  visibleTo?: WorkViewer
}

const fired = z.object({ runId, id: text, createdAt: time })

/**
 * Lists runs that automations started, newest first; returns one more than `limit`. `id` and `createdAt` are those of
 * the fire.
 */
export async function listFiredRuns(db: Db, filter: FiredRunFilter): Promise<z.output<typeof fired>[]> {
  const query = db('automation_fires as f')
    .join('runs as r', 'r.id', 'f.run_id')
    .where({ 'f.workspace_id': filter.workspaceId, 'f.kind': 'triggered' })
  if (filter.automationId !== undefined) void query.where('f.automation_id', filter.automationId)
  if (filter.statuses) onlyOfStatuses(query.where({ 'r.workspace_id': filter.workspaceId }), filter.statuses, 'r.')
  if (filter.visibleTo) onlyVisibleWork(query, { viewer: filter.visibleTo, table: 'r' })
  const found = newestFirst(query, filter, 'f.')
  const rows: unknown[] = await found.select({ runId: 'f.run_id', id: 'f.id', createdAt: 'f.created_at' })
  return rows.map((row) => fired.parse(row))
}

/** Removes skips older than `before`, since a paused automation records one at every instant. Fires with a run stay. */
export async function removeOldSkips(db: Db, before: number): Promise<number> {
  const old = db('automation_fires').where({ kind: 'skipped' }).where('created_at', '<', before)
  return deleteInBatches(db, 'automation_fires', old)
}
