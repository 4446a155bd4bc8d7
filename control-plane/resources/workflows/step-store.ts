import type { RunId, WorkflowRunId } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { int, nullableInt, text } from '../../db/columns.ts'
import { workflowRunId, workspaceUuid } from '../../db/id-columns.ts'
import type { Askable, Db } from '../../db/open.ts'
import { commandAtEnd, query } from '../../db/statement.ts'
import { onlyVisibleWork, type WorkViewer } from '../projects/work-visibility.ts'
import { runs, type RunRow } from '../runs/store.ts'

// The runs that do the steps of workflows. A step whose run stops to ask is gone on with by the run that is woken then.

/** The runs of these workflow runs' steps, oldest first. `visibleTo`: only those that this viewer sees. */
export async function listRunsOfSteps(
  db: Db,
  workflowRunIds: readonly WorkflowRunId[],
  visibleTo?: WorkViewer,
): Promise<RunRow[]> {
  if (workflowRunIds.length === 0) return []
  const query = runs.from(db).whereIn('workflow_run_id', [...workflowRunIds])
  if (visibleTo) onlyVisibleWork(query, { viewer: visibleTo, table: 'runs' })
  return runs.list(query.orderBy(['created_at', 'id']))
}

const last = runs.query('where workflow_run_id = ? order by created_at desc, id desc limit ?')

/** The run that was made last for a step; null: there is none yet. */
export async function findLastRunOfSteps(db: Db, workflowRunId: WorkflowRunId): Promise<RunRow | null> {
  return last.first(db, [workflowRunId, 1])
}

const open = runs.query(
  `where workflow_run_id = ? and (
     ended_at is null
     or exists (select 1 from approvals where run_id = runs.id and status = 'open')
     or exists (select 1 from questions where run_id = runs.id and status = 'open')
   ) order by created_at, id`,
)

/** The steps' runs that have not ended, or that asked what nobody has answered, oldest first. */
export async function listOpenRunsOfSteps(db: Db, workflowRunId: WorkflowRunId): Promise<RunRow[]> {
  return open.list(db, [workflowRunId])
}

/** A run, with its last frame unless that is large; see `resultIn`. */
export interface EndedStep {
  run: RunRow
  lastFrame: { firstSeq: number; lastSeq: number; body: Buffer } | null
}

/** A longer frame is not read along: a thousand steps may end together, and those of all of them are read at once. */
const frameBytes = 16 * 1024

const ended = query(
  `select ${runs.select('runs')}, last.first_seq as "firstSeq", last.last_seq as "lastSeq", last.body
   from runs left join run_frames last
     on last.run_id = runs.id and length(last.body) <= ${frameBytes}
     and last.first_seq = (select max(first_seq) from run_frames where run_id = runs.id)
   where workflow_run_id = ? and workflow_call in [
     select seq from workflow_calls
     where workflow_run_id = ? and ended_at is not null and handed_order is null and result is null
   ] order by created_at, id`,
  z
    .looseObject({ firstSeq: nullableInt, lastSeq: nullableInt, body: z.instanceof(Buffer).nullable() })
    .transform(({ firstSeq, lastSeq, body, ...row }): EndedStep => ({
      run: runs.part(row),
      lastFrame: body === null ? null : { firstSeq: firstSeq!, lastSeq: lastSeq!, body },
    })),
)

/** The runs of the steps that ended, and whose result the program was not given, oldest first. */
export async function listEndedSteps(db: Askable, workflowRunId: WorkflowRunId): Promise<EndedStep[]> {
  return ended.list(db, [workflowRunId, workflowRunId])
}

const ofCalls = runs.query('where workflow_run_id = ? and workflow_call in ? order by created_at, id')

/** The runs of some steps of one workflow run, by the numbers of their calls, oldest first. */
export async function listRunsOfCalls(
  db: Db,
  { workflowRunId, seqs }: { workflowRunId: WorkflowRunId; seqs: readonly number[] },
): Promise<RunRow[]> {
  return ofCalls.list(db, [workflowRunId, seqs])
}

/** Holds where something goes on with a run that ended: a person has yet to answer, or a wake waits. */
const goesOn = (runId: string) => `(
  exists (select 1 from approvals where run_id = ${runId} and status = 'open')
  or exists (select 1 from questions where run_id = ${runId} and status = 'open' and workflow_run_id is null)
  or exists (select 1 from wakes where continues_run_id = ${runId} and state = 'waiting'))`

const end = commandAtEnd(
  `update workflow_calls set ended_at = ?
   where workflow_run_id = ? and seq = ? and ended_at is null and not ${goesOn('?')}`,
)

/** Notes that the step of this run, which has ended, came to its end, unless something goes on with the run. */
export async function endStepOfRun(
  db: Db,
  { id, workflowRunId, workflowCall }: { id: RunId; workflowRunId: WorkflowRunId; workflowCall: number },
  at: number,
): Promise<void> {
  await end(db, [at, workflowRunId, workflowCall, id, id, id])
}

const waitingOf = query(
  `select wakes.id from wakes
   join runs on runs.id = wakes.continues_run_id
   join workflow_calls calls on calls.workflow_run_id = runs.workflow_run_id and calls.seq = runs.workflow_call
   where runs.workflow_run_id = ? and wakes.state = 'waiting' and calls.ended_at is null`,
  z.object({ id: text }),
)

/** Ids of the wakes that wait to go on with steps of this workflow run. */
export async function listWakesOfSteps(db: Db, workflowRunId: WorkflowRunId): Promise<string[]> {
  return (await waitingOf.list(db, [workflowRunId])).map(({ id }) => id)
}

const left = z.object({ workflowRunId, seq: int, workspaceId: workspaceUuid })

/** Steps that nothing goes on with any more, though nobody noted their end: what they waited for was closed. */
export async function listLeftSteps(db: Db, limit: number): Promise<z.output<typeof left>[]> {
  const rows: unknown[] = await db('workflow_calls')
    .join('workflow_runs', 'workflow_runs.id', 'workflow_calls.workflow_run_id')
    .whereNull('workflow_runs.completed_at')
    .whereNotNull('workflow_calls.step_ordinal')
    .whereNull('workflow_calls.advanced_at')
    .whereNull('workflow_calls.ended_at')
    .whereNotExists((live) => {
      void live
        .from('runs')
        .select(db.raw('1'))
        .whereRaw('runs.workflow_run_id = workflow_calls.workflow_run_id')
        .whereRaw('runs.workflow_call = workflow_calls.seq')
        .where((one) => void one.whereNull('runs.ended_at').orWhereRaw(goesOn('runs.id')))
    })
    .orderBy('workflow_calls.dispatched_at')
    .limit(limit)
    .select('workflow_calls.seq', {
      workflowRunId: 'workflow_calls.workflow_run_id',
      workspaceId: 'workflow_runs.workspace_id',
    })
  return rows.map((row) => left.parse(row))
}
