import type { Knex } from 'knex'
import { z } from 'zod'
import { int, text } from '../../db/columns.ts'
import { workflowRunId, workspaceUuid } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'

// Waits of workflows on the checks of a branch's pull request.

const waitedBranch = z.object({
  workspaceId: workspaceUuid,
  /** `owner/name`, lower-case. */
  repo: text,
  branch: text,
})
const branchColumns = ['f.workspace_id as workspaceId', 'c.repo', 'c.branch']
/** A branch on which running workflow runs of a workspace wait. */
export type WaitedBranch = z.output<typeof waitedBranch>

const openChecks = waitedBranch.extend({ workflowRunId, seq: int, deadlineAt: int })
export type OpenChecks = z.output<typeof openChecks>

/** Waits that have not ended, of workflow runs that have not either. */
const openWaits = (db: Db): Knex.QueryBuilder =>
  db('workflow_calls as c')
    .join('workflow_runs as f', 'f.id', 'c.workflow_run_id')
    .where({ 'c.kind': 'checks', 'f.status': 'running' })
    .whereNotNull('c.repo')
    .whereNull('c.ended_at')

/**
 * Lists waits with the nearest deadline first: those on one branch, or those whose deadline has come. `after`: those that follow
 * this one.
 */
export async function listOpenChecks(
  db: Db,
  filter: { on?: WaitedBranch; dueBefore?: number; after?: OpenChecks; limit: number },
): Promise<OpenChecks[]> {
  const query = openWaits(db)
  if (filter.on !== undefined) {
    const { workspaceId, repo, branch } = filter.on
    void query.where({ 'f.workspace_id': workspaceId, 'c.repo': repo, 'c.branch': branch })
  }
  if (filter.dueBefore !== undefined) void query.where('c.deadline_at', '<=', filter.dueBefore)
  if (filter.after !== undefined) {
    const { deadlineAt, workflowRunId, seq } = filter.after
    void query.whereRaw('(c.deadline_at, c.workflow_run_id, c.seq) > (?, ?, ?)', [deadlineAt, workflowRunId, seq])
  }
  const rows: unknown[] = await query
    .orderBy(['c.deadline_at', 'c.workflow_run_id', 'c.seq'])
    .limit(filter.limit)
    .select(...branchColumns, { workflowRunId: 'c.workflow_run_id', seq: 'c.seq', deadlineAt: 'c.deadline_at' })
  return rows.map((row) => openChecks.parse(row))
}

/** Lists each branch once, however many wait on it. `after`: those that follow this one. */
export async function listWaitedBranches(
  db: Db,
  filter: { after?: WaitedBranch; limit: number },
): Promise<WaitedBranch[]> {
  const query = openWaits(db)
  if (filter.after !== undefined) {
    const { workspaceId, repo, branch } = filter.after
    void query.whereRaw('(f.workspace_id, c.repo, c.branch) > (?, ?, ?)', [workspaceId, repo, branch])
  }
  const rows: unknown[] = await query
    .orderBy(['f.workspace_id', 'c.repo', 'c.branch'])
    .limit(filter.limit)
    .distinct(...branchColumns)
  return rows.map((row) => waitedBranch.parse(row))
}

/** Lists the branches of a repository whose waits have the nearest deadlines, those first. */
export async function listNearestBranches(db: Db, repo: string, limit: number): Promise<WaitedBranch[]> {
  const rows: unknown[] = await openWaits(db)
    .where('c.repo', repo)
    .groupBy('f.workspace_id', 'c.repo', 'c.branch')
    .orderByRaw('min(c.deadline_at), f.workspace_id, c.branch')
    .limit(limit)
    .select(branchColumns)
  return rows.map((row) => waitedBranch.parse(row))
}
