import type { Knex } from 'knex'
import { z } from 'zod'
import { int, text } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'

/** Waits of workflows on the checks of a branch's pull request. */

/** A branch on which running workflow runs of a workspace wait. */
export interface WaitedBranch {
  workspaceId: string
  /** `owner/name`, lower-case. */
  repo: string
  branch: string
}

export interface OpenChecks extends WaitedBranch {
  workflowRunId: string
  seq: number
  deadlineAt: number
}

const row = z
  .object({ workflow_run_id: text, seq: int, workspace_id: text, repo: text, branch: text, deadline_at: int })
  .transform((r): OpenChecks => ({
    workflowRunId: r.workflow_run_id,
    seq: r.seq,
    workspaceId: r.workspace_id,
    repo: r.repo,
    branch: r.branch,
    deadlineAt: r.deadline_at,
  }))

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
    .orderBy([{ column: 'c.deadline_at' }, { column: 'c.workflow_run_id' }, { column: 'c.seq' }])
    .limit(filter.limit)
    .select('c.workflow_run_id', 'c.seq', 'f.workspace_id', 'c.repo', 'c.branch', 'c.deadline_at')
  return rows.map((each) => row.parse(each))
}

const branchRow = z
  .object({ workspace_id: text, repo: text, branch: text })
  .transform((r): WaitedBranch => ({ workspaceId: r.workspace_id, repo: r.repo, branch: r.branch }))

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
    .orderBy([{ column: 'f.workspace_id' }, { column: 'c.repo' }, { column: 'c.branch' }])
    .limit(filter.limit)
    .distinct('f.workspace_id', 'c.repo', 'c.branch')
  return rows.map((each) => branchRow.parse(each))
}

/** Lists the branches of a repository whose waits have the nearest deadlines, those first. */
export async function listNearestBranches(db: Db, repo: string, limit: number): Promise<WaitedBranch[]> {
  const rows: unknown[] = await openWaits(db)
    .where('c.repo', repo)
    .groupBy('f.workspace_id', 'c.repo', 'c.branch')
    .orderByRaw('min(c.deadline_at), f.workspace_id, c.branch')
    .limit(limit)
    .select('f.workspace_id', 'c.repo', 'c.branch')
  return rows.map((each) => branchRow.parse(each))
}
