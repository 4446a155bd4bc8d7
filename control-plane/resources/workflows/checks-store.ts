import { z } from 'zod'
import { int, text } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'

/** Waits of workflows on the checks of a branch's pull request. */

export interface OpenChecks {
  workflowRunId: string
  seq: number
  workspaceId: string
  /** `owner/name`, lower-case. */
  repo: string
  branch: string
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

/**
 * Of running workflow runs, those with the nearest deadline first; of one repository, or whose deadline has come. `after`: those
 * that follow this one.
 */
export async function listOpenChecks(
  db: Db,
  filter: { repo?: string; dueBefore?: number; after?: OpenChecks; limit: number },
): Promise<OpenChecks[]> {
  const query = db('workflow_calls as c')
    .join('workflow_runs as f', 'f.id', 'c.workflow_run_id')
    .where({ 'c.kind': 'checks', 'f.status': 'running' })
    .whereNull('c.advanced_at')
    .whereNull('c.ended_at')
  if (filter.repo !== undefined) void query.where('c.repo', filter.repo)
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
