import type { World } from '../../../shared/lib/world.ts'
import type { Tx } from '../../db/open.ts'
import { cancelRun } from '../../run/endings/cancel-run.ts'
import { closeByPlatform } from '../../resources/approvals/steps/close.ts'
import { listHoldingApprovals } from '../../resources/approvals/store.ts'
import { closeBySystem } from '../../resources/questions/steps/answer.ts'
import { listOpenQuestions } from '../../resources/questions/store.ts'
import { replaceWorkflowRun, type WorkflowRunRow } from '../../resources/workflows/run-store.ts'
import { listOpenRunsOfSteps, listWakesOfSteps } from '../../resources/workflows/step-store.ts'
import { answerWakes } from '../../run/wakes/wake-store.ts'
import type { WakeAnswer } from '../../run/wakes/wake.ts'

export interface WorkflowRunEnding {
  status: 'completed' | 'failed'
  summary: string | null
  error?: WorkflowRunRow['error']
  log?: WorkflowRunRow['log']
}

const stepGone = {
  kind: 'not_dispatched',
  reason: 'dispatch_build_failed',
  message: 'The workflow of this step has ended.',
} as const satisfies WakeAnswer

/** Ends a workflow run, and cancels what is open of it: its runs, what they asked people, and the wakes that go on with them. */
export async function finishWorkflowRun(
  tx: Tx,
  run: WorkflowRunRow,
  { status, summary, error = null, log = run.log }: WorkflowRunEnding,
  { world, leaseMs }: { world: World; leaseMs: number },
): Promise<void> {
  const now = world.now()
  const replayedAt = run.replayedAt ?? now
  await replaceWorkflowRun(tx, run, { status, summary, error, log, replayedAt, changedAt: now, completedAt: now })
  const runs = await listOpenRunsOfSteps(tx, run.id)
  const ids = runs.map(({ id }) => id)
  for (const approval of await listHoldingApprovals(tx, 'run_id', { ids, triggers: ['tool_permission'] }))
    await closeByPlatform(tx, approval, { outcome: 'reject', reason: 'workflow_ended', world })
  const asked = [
    ...(await listOpenQuestions(tx, 'run_id', ids)),
    ...(await listOpenQuestions(tx, 'workflow_run_id', [run.id])),
  ]
  for (const question of asked) await closeBySystem(tx, question, { reason: 'workflow_ended', world })
  const wakes = await listWakesOfSteps(tx, run.id)
  if (wakes.length > 0) await answerWakes(tx, { ids: wakes, answer: stepGone, at: now })
  const reason = `The workflow ${run.workflow} ended.`
  for (const step of runs)
    if (step.endedAt === null) await cancelRun(tx, step, { exitReason: 'interrupted', reason, world, leaseMs })
}

/** A failure by a rule of ours, which stands in no line of the program. */
export const failureOf = (message: string): WorkflowRunEnding => ({
  status: 'failed',
  summary: message,
  error: { message, line: null, column: null },
})
