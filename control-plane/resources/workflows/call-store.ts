import type { WorkflowRunId } from '../../../shared/lib/ids.ts'
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
import { agentRef, questionId, workflowRunId, workspaceUuid } from '../../db/id-columns.ts'
import type { Askable, Db } from '../../db/open.ts'
import { countBy } from '../../db/reads.ts'
import { commandAtEnd } from '../../db/statement.ts'
import { table, type RowOf } from '../../db/table.ts'
import { onlyAwake } from './run-store.ts'

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

const calls = table(
  'workflow_calls',
  {
    workflowRunId,
    seq: int,
    /** The number among agent and command steps; null for the other calls. */
    stepOrdinal: nullableInt,
    kind: z.enum(storedCallKinds),
    /** JSON. */
    args: text,
    digest: text,
    agentRef: agentRef.nullable(),
    dispatchedAt: time,
    endedAt: nullableTime,
    isValue: nullableFlag,
    /** JSON of the value, or of the failure; null: it is read from the run. */
    result: nullableText,
    handedOrder: nullableInt,
    resumeAttempts: int,
    resumedAt: nullableTime,
    advancedAt: nullableTime,
    /** The folder in which the command of a command step ran; null: none is known. */
    ranIn: nullableText,
    questionId: questionId.nullable(),
    branch: nullableText,
    repo: nullableText,
    deadlineAt: nullableTime,
    checks: nullableJson(z.array(checkRow)),
  },
  { columns: { agentRef: 'agent_id' } },
)
export type CallRow = RowOf<typeof calls>

export type CallKey = Pick<CallRow, 'workflowRunId' | 'seq'>
/** A wider object may be given. */
const keyOf = ({ workflowRunId, seq }: CallKey): CallKey => ({ workflowRunId, seq })

export async function insertCall(
  db: Db,
  call: Pick<
    CallRow,
    'workflowRunId' | 'seq' | 'stepOrdinal' | 'kind' | 'args' | 'digest' | 'agentRef' | 'dispatchedAt'
  > &
    Partial<Pick<CallRow, 'questionId' | 'branch' | 'repo' | 'deadlineAt'>>,
): Promise<void> {
  await calls.insert(db, { ...call, resumeAttempts: 0 })
}

const byRun = calls.query('where workflow_run_id = ? and (handed_order is null or handed_order >= ?) order by seq')

/** Lists the calls in their order. `handedBefore`: without those whose results were handed over before the one of this number. */
export async function listCalls(
  db: Askable,
  workflowRunId: WorkflowRunId,
  { handedBefore = 0 }: { handedBefore?: number } = {},
): Promise<CallRow[]> {
  return byRun.list(db, [workflowRunId, handedBefore])
}

/** The calls of several runs, in their order. */
export async function listCallsOf(db: Db, workflowRunIds: readonly WorkflowRunId[]): Promise<CallRow[]> {
  if (workflowRunIds.length === 0) return []
  return calls.list(
    calls
      .from(db)
      .whereIn('workflow_run_id', [...workflowRunIds])
      .orderBy('seq'),
  )
}

/** The number of calls of each of these runs that has any. */
export async function countCalls(db: Db, workflowRunIds: readonly WorkflowRunId[]): Promise<Map<string, number>> {
  if (workflowRunIds.length === 0) return new Map()
  return countBy(db('workflow_calls').whereIn('workflow_run_id', [...workflowRunIds]), 'workflow_run_id')
}

/** Notes that the call has come to its end, once. Without a result, that is read from its run. */
export async function endCall(
  db: Db,
  call: CallKey,
  end: { at: number; isValue?: boolean; result?: string },
): Promise<boolean> {
  const { at: endedAt, isValue, result } = end
  return (await calls.update(db, { ...keyOf(call), endedAt: null }, { endedAt, isValue, result })) === 1
}

const hand = commandAtEnd(
  `update workflow_calls
   set is_value = ?, result = ?, handed_order = ?, ran_in = ?, resumed_at = ?, advanced_at = ?
   where workflow_run_id = ? and seq = ?`,
)

/** The result was handed over and the program went on. */
export async function recordHanded(
  db: Db,
  call: CallKey,
  handed: { isValue: boolean; result: string; order: number; at: number; ranIn?: string | null },
): Promise<void> {
  const { isValue, result, order, at, ranIn = null } = handed
  await hand(db, [isValue ? 1 : 0, result, order, ranIn, at, at, call.workflowRunId, call.seq])
}

/** The result was sent, and the program did not go on. */
export async function recordSent(db: Db, call: CallKey, sent: { at: number; attempts: number }): Promise<void> {
  const { at: resumedAt, attempts: resumeAttempts } = sent
  await calls.update(db, { ...keyOf(call), advancedAt: null }, { resumedAt, resumeAttempts })
}

/** Calls of one workflow run that have not ended. */
const openCalls = (db: Db, { workflowRunId, seqs }: { workflowRunId: WorkflowRunId; seqs: readonly number[] }) =>
  db('workflow_calls')
    .where({ workflow_run_id: workflowRunId })
    .whereIn('seq', [...seqs])
    .whereNull('ended_at')

/** Ends several calls that come to the same, as `endCall` ends one. Returns how many had not ended before. */
export async function endCalls(
  db: Db,
  those: { workflowRunId: WorkflowRunId; seqs: readonly number[] },
  { at, result }: { at: number; result: string },
): Promise<number> {
  return openCalls(db, those).update({ ended_at: at, is_value: 1, result })
}

/** The checks of the pull request as they were read last; nothing is written where they are the same. */
export async function recordChecks(
  db: Db,
  those: { workflowRunId: WorkflowRunId; seqs: readonly number[] },
  checks: readonly CheckRow[],
): Promise<void> {
  const stored = calls.toColumns({ checks: [...checks] }).checks as string
  await openCalls(db, those)
    .where((other) => void other.whereNull('checks').orWhereNot('checks', stored))
    .update({ checks: stored })
}

/** The results that wait count as never sent. */
export async function resetAttempts(db: Db, workflowRunId: WorkflowRunId): Promise<void> {
  await calls.update(db, { workflowRunId, advancedAt: null }, { resumedAt: null, resumeAttempts: 0 })
}

const waiting = z.object({ id: workflowRunId, workspaceId: workspaceUuid, endedAt: int })

/** Running workflow runs with results that wait to be handed over since `endedBefore`, and can be. */
export async function listWaitingRuns(
  db: Db,
  filter: { endedBefore: number; limit: number },
): Promise<z.output<typeof waiting>[]> {
  const query = db('workflow_calls')
    .join('workflow_runs', 'workflow_runs.id', 'workflow_calls.workflow_run_id')
    .where('workflow_runs.status', 'running')
    .whereNull('workflow_calls.advanced_at')
    .where('workflow_calls.ended_at', '<=', filter.endedBefore)
  onlyAwake(query)
  const rows: unknown[] = await query
    .groupBy('workflow_runs.id', 'workflow_runs.workspace_id')
    .orderBy(['endedAt', 'workflow_runs.id'])
    .limit(filter.limit)
    .select({ id: 'workflow_runs.id', workspaceId: 'workflow_runs.workspace_id' })
    .min({ endedAt: 'workflow_calls.ended_at' })
  return rows.map((row) => waiting.parse(row))
}
