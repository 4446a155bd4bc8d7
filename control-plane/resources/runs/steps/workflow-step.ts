import type { ActorRef, RunId } from '../../../../shared/lib/ids.ts'
import { z } from 'zod'
import type { WorkflowStepOfRun } from '../../../../shared/api/workflow-fields.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import { nullableInt, nullableText, text } from '../../../db/columns.ts'
import { actorRef, runId, workflowRunId } from '../../../db/id-columns.ts'
import type { Db } from '../../../db/open.ts'
import { query } from '../../../db/statement.ts'

// The step of a workflow that a run does, as it is shown with the run, and with what is asked about it.

const row = z.object({
  runId,
  workflowRunId,
  workflow: text,
  step: nullableInt,
  args: nullableText,
  writtenByRef: actorRef.nullable(),
})

/** Private agents stay unnamed: who reads a run need not see whoever wrote the program. */
const steps = query(
  `select runs.id as "runId", flows.id as "workflowRunId", flows.workflow, calls.step_ordinal as step,
     case when length(calls.args) <= ? then calls.args end as args,
     case when author.visibility = 'private' then null else flows.written_by end as "writtenByRef"
   from runs
   join workflow_runs flows on flows.id = runs.workflow_run_id
   left join workflow_calls calls on calls.workflow_run_id = flows.id and calls.seq = runs.workflow_call
   left join agents author on author.id = flows.written_by
   where runs.id in ?`,
  row,
)

/** A call with a longer prompt is shown without its label among several runs: a hundred of them would be tens of megabytes. */
const argCharsInLists = 16_384
const anyArgChars = 10_000_000

const shownArgs = z.object({ label: z.string().nullish(), phase: z.string().nullish() })

/** Returns the steps by the ids of their runs; runs that do no step are left out. */
export async function listWorkflowSteps(
  db: Db,
  runIds: readonly (RunId | null)[],
): Promise<ReadonlyMap<RunId, WorkflowStepOfRun>> {
  const ids = [...new Set(runIds.filter((id) => id !== null))]
  if (ids.length === 0) return new Map()
  const found = await steps.list(db, [ids.length === 1 ? anyArgChars : argCharsInLists, ids])
  return new Map(found.map((each) => [each.runId, toStep(each)]))
}

function toStep({ workflowRunId, workflow, step, args, writtenByRef }: z.output<typeof row>): WorkflowStepOfRun {
  const { label = null, phase = null } = args === null ? {} : shownArgs.parse(JSON.parse(args))
  const author = writtenByRef === null ? null : { type: typeOf(writtenByRef), id: writtenByRef }
  return { workflowRunId, workflow, step, label, phase, writtenBy: author }
}

const typeOf = (id: ActorRef) => (id.startsWith('agt_') ? ('agent' as const) : ('user' as const))

/** Adds to approvals and questions the step of a workflow whose run asks. */
export async function withWorkflowSteps<Asked extends { runId: RunId | null }>(
  db: Db,
  asked: readonly Asked[],
): Promise<(Asked & { workflowStep?: WorkflowStepOfRun })[]> {
  const known = await listWorkflowSteps(
    db,
    asked.map(({ runId }) => runId),
  )
  return asked.map((each) => ({
    ...each,
    ...withoutUndefined({ workflowStep: each.runId === null ? undefined : known.get(each.runId) }),
  }))
}
