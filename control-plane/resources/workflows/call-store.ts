import { z } from 'zod'
import {
  int,
  nullableFlag,
  nullableInt,
  nullableJson,
  nullableText,
  nullableTime,
  text,
  time,
} from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

/**
 * The journal of a workflow run: the calls that its program made, and what they came to. A call is
 *
 *     dispatched --its run ends--> ended --handed to the program--> resumed --the program went on--> advanced
 *
 * Its state follows from the times. `handedOrder` counts the results of the run in the order in which its program got them.
 */
export const storedCallKinds = ['agent', 'gate', 'ask', 'checks'] as const

/** `status`: `pending`, `passed` or `failed`. */
const checkRow = z.object({
  name: z.string(),
  status: z.enum(['pending', 'passed', 'failed']),
  url: z.string().nullable(),
})
export type CheckRow = z.output<typeof checkRow>

const calls = table('workflow_calls', {
  workflowRunId: text,
  seq: int,
  /** The number among agent and gate steps; null for the other calls. */
  stepOrdinal: nullableInt,
  kind: z.enum(storedCallKinds),
  /** JSON. */
  args: text,
  digest: text,
  agentId: nullableText,
  dispatchedAt: time,
  endedAt: nullableTime,
  isValue: nullableFlag,
  /** JSON of the value, or of the failure; null: it is read from the run. */
  result: nullableText,
  handedOrder: nullableInt,
  resumeAttempts: int,
  resumedAt: nullableTime,
  advancedAt: nullableTime,
  /** Of a gate: the folder in which its command ran. */
  ranIn: nullableText,
  questionId: nullableText,
  branch: nullableText,
  repo: nullableText,
  deadlineAt: nullableTime,
  checks: nullableJson(z.array(checkRow)),
})
export type CallRow = RowOf<typeof calls>

export async function insertCall(
  db: Db,
  call: Pick<
    CallRow,
    'workflowRunId' | 'seq' | 'stepOrdinal' | 'kind' | 'args' | 'digest' | 'agentId' | 'dispatchedAt'
  > &
    Partial<Pick<CallRow, 'questionId' | 'branch' | 'repo' | 'deadlineAt'>>,
): Promise<void> {
  await calls.insert(db, { ...call, resumeAttempts: 0 })
}

/** In their order. `handedBefore`: without those whose results were handed over before the one of this number. */
export async function listCalls(
  db: Db,
  workflowRunId: string,
  { handedBefore = 0 }: { handedBefore?: number } = {},
): Promise<CallRow[]> {
  const query = calls.from(db).where({ workflow_run_id: workflowRunId }).orderBy('seq')
  if (handedBefore > 0)
    void query.where((its) => void its.whereNull('handed_order').orWhere('handed_order', '>=', handedBefore))
  return calls.list(query)
}

/** The calls of several runs, in their order. */
export async function listCallsOf(db: Db, workflowRunIds: readonly string[]): Promise<CallRow[]> {
  return calls.list(
    calls
      .from(db)
      .whereIn('workflow_run_id', [...workflowRunIds])
      .orderBy('seq'),
  )
}

/** Notes that the call has come to its end, once. Without a result, that is read from its run. */
export async function endCall(
  db: Db,
  call: { workflowRunId: string; seq: number },
  end: { at: number; isValue?: boolean; result?: string },
): Promise<boolean> {
  const changed = await db('workflow_calls')
    .where({ workflow_run_id: call.workflowRunId, seq: call.seq })
    .whereNull('ended_at')
    .update(
      calls.toColumns({
        endedAt: end.at,
        ...(end.isValue !== undefined && { isValue: end.isValue }),
        ...(end.result !== undefined && { result: end.result }),
      }),
    )
  return changed === 1
}

/** The result was handed over and the program went on. */
export async function recordHanded(
  db: Db,
  call: { workflowRunId: string; seq: number },
  handed: { isValue: boolean; result: string; order: number; at: number; ranIn?: string | null },
): Promise<void> {
  const { isValue, result, order: handedOrder, at, ranIn = null } = handed
  await db('workflow_calls')
    .where({ workflow_run_id: call.workflowRunId, seq: call.seq })
    .update(calls.toColumns({ isValue, result, handedOrder, ranIn, resumedAt: at, advancedAt: at }))
}

/** The result was sent, and the program did not go on. */
export async function recordSent(
  db: Db,
  call: { workflowRunId: string; seq: number },
  sent: { at: number; attempts: number },
): Promise<void> {
  await db('workflow_calls')
    .where({ workflow_run_id: call.workflowRunId, seq: call.seq })
    .whereNull('advanced_at')
    .update(calls.toColumns({ resumedAt: sent.at, resumeAttempts: sent.attempts }))
}

/** The checks of the pull request as they were read last. */
export async function recordChecks(
  db: Db,
  call: { workflowRunId: string; seq: number },
  checks: readonly CheckRow[],
): Promise<void> {
  await db('workflow_calls')
    .where({ workflow_run_id: call.workflowRunId, seq: call.seq })
    .whereNull('ended_at')
    .update(calls.toColumns({ checks: [...checks] }))
}

/** The results that wait count as never sent. */
export async function resetAttempts(db: Db, workflowRunId: string): Promise<void> {
  await db('workflow_calls')
    .where({ workflow_run_id: workflowRunId })
    .whereNull('advanced_at')
    .update(calls.toColumns({ resumedAt: null, resumeAttempts: 0 }))
}

const waiting = z.object({ id: text, workspace_id: text, ended_at: int })

/** Running workflow runs with results that wait to be handed over since `endedBefore`. */
export async function listWaitingRuns(
  db: Db,
  filter: { endedBefore: number; limit: number },
): Promise<{ id: string; workspaceId: string; endedAt: number }[]> {
  const rows: unknown[] = await db('workflow_calls')
    .join('workflow_runs', 'workflow_runs.id', 'workflow_calls.workflow_run_id')
    .where('workflow_runs.status', 'running')
    .whereNull('workflow_calls.advanced_at')
    .where('workflow_calls.ended_at', '<=', filter.endedBefore)
    .groupBy('workflow_runs.id', 'workflow_runs.workspace_id')
    .orderBy([{ column: 'ended_at' }, { column: 'workflow_runs.id' }])
    .limit(filter.limit)
    .select('workflow_runs.id', 'workflow_runs.workspace_id')
    .min({ ended_at: 'workflow_calls.ended_at' })
  return rows
    .map((row) => waiting.parse(row))
    .map(({ id, workspace_id, ended_at }) => ({ id, workspaceId: workspace_id, endedAt: ended_at }))
}
