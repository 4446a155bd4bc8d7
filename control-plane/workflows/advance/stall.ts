import type { WorkflowRunId } from '../../../shared/lib/ids.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { Tx } from '../../db/open.ts'
import { listCalls, recordSent, type CallRow } from '../../resources/workflows/call-store.ts'
import { nextForUnmoved } from '../../resources/workflows/rules.ts'
import { lockWorkflowRun, replaceWorkflowRun, type WorkflowRunRow } from '../../resources/workflows/run-store.ts'
import { findLastRunOfSteps, listRunsOfCalls } from '../../resources/workflows/step-store.ts'
import { isHalted } from '../../resources/workspaces/rules.ts'
import { findWorkspace } from '../../resources/workspaces/store.ts'
import { askPerson } from './ask.ts'
import { failureOf, finishWorkflowRun } from './finish.ts'

/**
 * Looks after a workflow run whose results did not reach its program: they are sent again a few times, then the run has
 * stalled and a person is asked. Returns true when they are to be sent now.
 */
export async function lookAfterUnmoved(
  tx: Tx,
  workflowRunId: WorkflowRunId,
  context: { world: World; leaseMs: number },
): Promise<boolean> {
  const run = await lockWorkflowRun(tx, workflowRunId)
  if (run === null || run.status !== 'running') return false
  const workspace = await findWorkspace(tx, run.workspaceId)
  if (workspace === null || isHalted(workspace)) return false
  const waiting = (await listCalls(tx, run.id)).filter(
    ({ endedAt, advancedAt }) => endedAt !== null && advancedAt === null,
  )
  if (waiting.length === 0) return false
  const now = context.world.now()
  const ended = Math.min(...waiting.map(({ endedAt }) => endedAt!))
  const attempts = Math.max(...waiting.map(({ resumeAttempts }) => resumeAttempts))
  const next = nextForUnmoved({ since: Math.max(ended, run.retriedAt ?? 0), attempts, now })
  if (next === 'stall') {
    await stall(tx, run, waiting, context)
    return false
  }
  if (next === 'resend')
    for (const { seq } of waiting)
      await recordSent(tx, { workflowRunId: run.id, seq }, { at: now, attempts: attempts + 1 })
  return next === 'resend' || waiting.some(({ resumedAt }) => resumedAt === null)
}

async function stall(
  tx: Tx,
  run: WorkflowRunRow,
  waiting: readonly CallRow[],
  context: { world: World; leaseMs: number },
): Promise<void> {
  const own = await listRunsOfCalls(tx, { workflowRunId: run.id, seqs: waiting.map(({ seq }) => seq) })
  const about = own.at(-1) ?? (await findLastRunOfSteps(tx, run.id))
  const trouble = run.stall?.message ?? 'The engine did not take the result.'
  // A question is always about a run.
  if (about === null) return finishWorkflowRun(tx, run, failureOf(trouble), context)
  const { world } = context
  await askPerson(tx, run, {
    prompt: promptOf(run, waiting),
    answerMode: 'single_select',
    options: [
      { key: 'retry', label: 'Try again' },
      { key: 'cancel', label: 'Cancel the workflow run' },
    ],
    call: null,
    about,
    world,
  })
  await replaceWorkflowRun(tx, run, { status: 'stalled', changedAt: world.now() })
}

function promptOf({ workflow, id, stall: trouble }: WorkflowRunRow, waiting: readonly CallRow[]): string {
  const step = waiting.find(({ stepOrdinal }) => stepOrdinal !== null)?.stepOrdinal
  const where = step == null ? '' : ` after step ${step}`
  const lines = [
    `The workflow ${workflow} (${id}) does not go on${where}. ${trouble?.message ?? 'The engine did not take the result.'}`,
  ]
  const shown = (call: { kind: string; args: string } | null) => (call === null ? 'none' : `${call.kind} ${call.args}`)
  if (trouble?.seq != null)
    lines.push(`Before it called: ${shown(trouble.recorded)}`, `Now it calls: ${shown(trouble.made)}`)
  return lines.join('\n\n')
}
