import type { WorkflowRunId, WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Tx } from '../db/open.ts'
import { inTransaction } from '../db/transaction.ts'
import { listWaitingRuns } from '../resources/workflows/call-store.ts'
import { listOpenChecks } from '../resources/workflows/checks-store.ts'
import { listCancelled, listUnchanged, listUnreplayed, lockWorkflowRun } from '../resources/workflows/run-store.ts'
import { listLeftSteps } from '../resources/workflows/step-store.ts'
import { endWaits } from '../resources/workflows/steps/checks-noted.ts'
import { endStepAt } from '../resources/workflows/steps/step-ended.ts'
import { isHalted } from '../resources/workspaces/rules.ts'
import { findWorkspace } from '../resources/workspaces/store.ts'
import { lookAfterUnmoved } from '../workflows/advance/stall.ts'
import { failureOf, finishWorkflowRun } from '../workflows/advance/finish.ts'
import type { Sweep } from './sweeper.ts'

/** The number of each kind that one round handles. */
const perRound = 500
/** A run that waits for nothing has failed after this long. */
const idleMs = 10 * 60_000

/**
 * Catches what an event missed: a step whose approval or question was closed without a wake has ended, and a workflow run
 * with results that nobody handed over goes on, or stalls in the end. One that waits for nothing fails. Several replicas may
 * work at once: the end of a step is noted once, and of two advances one wins.
 */
export function workflowsSweep({
  everyMs,
  leaseMs,
  runsPrograms,
  advanceSoon,
  idle,
}: {
  everyMs: number
  leaseMs: number
  /** False: runs that were never begun fail, too, since there is no engine. */
  runsPrograms: boolean
  advanceSoon: (run: { id: WorkflowRunId; workspaceId: WorkspaceUuid }) => void
  idle: () => Promise<void>
}): Sweep {
  return {
    name: 'workflows',
    everyMs,
    async run({ root, now, world, queue }) {
      for (const step of await listLeftSteps(root, perRound)) {
        const { workspaceId, workflowRunId, seq } = step
        const end = () => inTransaction(root, (tx) => endStepAt(tx, step, world.now()), { locks: [workspaceId] })
        queue.add(workspaceId, end, `${workflowRunId}:${seq}`)
      }
      for (const { id, workspaceId, version } of await listUnchanged(root, {
        changedBefore: now - idleMs,
        // A run that has yet to begin is begun below, however long that was not possible.
        onlyReplayed: runsPrograms,
        limit: perRound,
      })) {
        const fail = (tx: Tx) => failIdle(tx, { id, version }, { world, leaseMs })
        queue.add(workspaceId, () => inTransaction(root, fail, { locks: [workspaceId] }), `idle:${id}`)
      }
      for (const run of await listUnreplayed(root, perRound)) advanceSoon(run)
      for (const run of await listWaitingRuns(root, { endedBefore: now, limit: perRound })) {
        const look = (tx: Tx) => lookAfterUnmoved(tx, run.id, { world, leaseMs })
        const lookAndSend = async () => {
          if (await inTransaction(root, look, { locks: [run.workspaceId] })) advanceSoon(run)
        }
        queue.add(run.workspaceId, lookAndSend, `waiting:${run.id}`)
      }
      const due = await listOpenChecks(root, { dueBefore: now, limit: perRound })
      for (const [id, waits] of Map.groupBy(due, ({ workflowRunId }) => workflowRunId)) {
        const { workspaceId } = waits[0]!
        const end = (tx: Tx) => endWaits(tx, waits, world.now())
        queue.add(workspaceId, () => inTransaction(root, end, { locks: [workspaceId] }), `due:${id}`)
      }
      for (const run of await listCancelled(root, perRound)) advanceSoon(run)
    },
    idle,
  }
}

async function failIdle(
  tx: Tx,
  seen: { id: WorkflowRunId; version: number },
  context: { world: World; leaseMs: number },
): Promise<void> {
  const run = await lockWorkflowRun(tx, seen.id)
  if (run === null || run.status !== 'running' || run.version !== seen.version) return
  const workspace = await findWorkspace(tx, run.workspaceId)
  // The program waits for the agents of the workspace to be resumed.
  if (workspace === null || isHalted(workspace)) return
  const message = 'The program waits for nothing: no step, question or check of it is open.'
  await finishWorkflowRun(tx, run, failureOf(message), context)
}
