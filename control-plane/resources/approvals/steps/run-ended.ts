import type { RunId } from '../../../../shared/lib/ids.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { ExitReason } from '../../../../shared/runs/exit-reasons.ts'
import type { Db } from '../../../db/open.ts'
import type { RunEffect } from '../../../run/effects.ts'
import { closeBySystem } from '../../questions/steps/answer.ts'
import { listOpenQuestions } from '../../questions/store.ts'
import { findRun } from '../../runs/store.ts'
import { reviewBudgets } from './budget-hold.ts'
import { closeByPlatform } from './close.ts'
import { digestOf, ofRun, raiseApproval } from './raise.ts'
import { isAsking, rejectedWithRun } from '../rules.ts'
import { listHoldingApprovals } from '../store.ts'

/**
 * Closes the requests of an ended run that nobody can answer any more, and reviews the budgets that it has spent, in the transaction of its
 * ending.
 */
export const closeHoldsOfRun: RunEffect = async (tx, run, { world, exitReason, left }) => {
  const hasOwn = exitReason === 'budget_exceeded'
  if (hasOwn)
    await raiseApproval(
      tx,
      {
        ...ofRun(run),
        trigger: 'budget_breach',
        prompt: 'The run used up what a single run may use. Give its work to a new run in smaller steps.',
        gatedThing: {
          kind: 'budget',
          name: `run:${run.id}`,
          inputDigest: digestOf([run.id]),
          safeSummary: 'The budget of one run is used up.',
          scope: 'once',
        },
        raiseKey: `budget:${run.id}`,
      },
      world,
    )
  if ((hasOwn || left?.hasOpenHolds) && !isAsking(exitReason)) await closeUnasked(tx, run.id, { world, exitReason })
  if (left?.hasBudgets) await reviewBudgets(tx, run, world)
}

async function closeUnasked(
  tx: Db,
  runId: RunId,
  { world, exitReason }: { world: World; exitReason: ExitReason | null },
): Promise<void> {
  const approvals = await listHoldingApprovals(tx, 'run_id', { ids: [runId], triggers: rejectedWithRun })
  const questions = await listOpenQuestions(tx, 'run_id', [runId])
  if (approvals.length === 0 && questions.length === 0) return
  // The agent asked and then finished before its device heard that it must stop. Its requests stay open.
  if (exitReason === 'completed' && isAsking((await findRun(tx, runId))?.cancelExitReason ?? null)) return
  for (const approval of approvals)
    await closeByPlatform(tx, approval, { outcome: 'reject', reason: 'run_terminated', world })
  for (const question of questions) await closeBySystem(tx, question, { reason: 'run_ended', world })
}
