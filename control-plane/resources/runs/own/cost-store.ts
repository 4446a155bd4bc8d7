import type { WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { z } from 'zod'
import { rowReader } from '../../../db/columns.ts'
import { projectUuid } from '../../../db/id-columns.ts'
import { newestFirst, type OlderPage } from '../../../db/id-page.ts'
import type { Db } from '../../../db/open.ts'
import { onlyVisibleWork, type WorkViewer } from '../../projects/work-visibility.ts'
import { runs } from '../store.ts'

const { id, agentRef, taskId, taskKey, taskTitle, costUsd, usage, createdAt, startedAt, endedAt } = runs.columns
/** What is read of a run to add up what it cost: rows of runs are long, and many are read. */
const ofRun = { id, agentRef, taskId, taskKey, taskTitle, costUsd, usage, createdAt, startedAt, endedAt }
const costRow = z.object({ ...ofRun, projectUuid: projectUuid.nullable() })
const read = rowReader(costRow)
export type CostRow = z.infer<typeof costRow>

export interface CostFilter extends OlderPage {
  workspaceId: WorkspaceUuid
  visibleTo?: WorkViewer
  since: number
  until: number
}

/**
 * Runs that were created in this time, with the project of their task, newest first; one more than `limit`. Runs that were removed for
 * their age are among them.
 */
export async function listRunCosts(db: Db, filter: CostFilter): Promise<CostRow[]> {
  const found = [...(await listOf(db, 'runs', filter)), ...(await listOf(db, 'removed_runs', filter))]
  const isNewer = (one: CostRow, other: CostRow) =>
    other.createdAt - one.createdAt || (one.id < other.id ? 1 : one.id > other.id ? -1 : 0)
  return found.toSorted(isNewer).slice(0, filter.limit + 1)
}

async function listOf(db: Db, table: 'runs' | 'removed_runs', filter: CostFilter): Promise<CostRow[]> {
  const all = runs.fields(table)
  const fields = Object.fromEntries(Object.keys(ofRun).map((field) => [field, all[field]!]))
  const query = db(table)
    .leftJoin('tasks', 'tasks.id', `${table}.task_id`)
    .select({ ...fields, projectUuid: 'tasks.project_id' })
    .where(`${table}.workspace_id`, filter.workspaceId)
    .where(`${table}.created_at`, '>=', filter.since)
    .where(`${table}.created_at`, '<', filter.until)
  if (filter.visibleTo) onlyVisibleWork(query, { viewer: filter.visibleTo, table })
  const rows: unknown[] = await newestFirst(query, filter, `${table}.`)
  return rows.map(read)
}
