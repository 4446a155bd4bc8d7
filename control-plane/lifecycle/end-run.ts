import type { World } from '../../shared/lib/world.ts'
import { inOneTrip } from '../db/one-trip.ts'
import { publish } from '../db/transaction.ts'
import type { Db } from '../db/open.ts'
import { monthOf, toNanoUsd } from '../catalog/price.ts'
import { recordSpend } from '../resources/agents/spend-store.ts'
import { recordLastRun } from '../resources/agents/store.ts'
import { findLeftByRun } from '../resources/approvals/run-ended-store.ts'
import { endedAtOf } from '../resources/runs/rules.ts'
import { endRun, type Ending, type RunRow } from '../resources/runs/store.ts'
import { applyRunEffects } from './run-effects.ts'

interface Since {
  /** The time since the run ended on its device, as that says. */
  endedAgoMs?: number | undefined
}

interface Memory {
  /** Its sandbox had no memory left, as the runner in it says. */
  outOfMemory?: boolean
}

interface Session {
  /** The session that it was to go on with is gone, so nothing was done. */
  sessionLost?: boolean
}

/**
 * Ends a run, adds its cost to what its agent spent, and tells everybody whom it concerns, in the caller's transaction.
 * False when it had ended already.
 */
export async function finishRun(
  db: Db,
  run: RunRow,
  {
    world,
    endedAgoMs = 0,
    sessionLost = false,
    outOfMemory = false,
    ...ending
  }: Omit<Ending, 'runId' | 'endedAt'> & Since & Session & Memory & { world: World },
): Promise<boolean> {
  const endedAt = endedAtOf(run, { heardAt: ending.at, agoMs: endedAgoMs })
  // The second one does nothing unless the first one has ended the run.
  const [isEnded, , left] = await inOneTrip(db, [
    () => endRun(db, { ...ending, endedAt, runId: run.id }),
    () => recordLastRun(db, run, ending.at),
    () => findLeftByRun(db, run),
  ])
  if (!isEnded) return false
  const costUsd = ending.usage === undefined ? run.costUsd : (ending.usage?.costUsd ?? null)
  if (costUsd !== null) await recordSpend(db, run.agentId, { month: monthOf(ending.at), nanoUsd: nanoOf(costUsd) })
  await publish(db, {
    topic: 'run.ended',
    key: run.id,
    payload: {
      workspaceId: run.workspaceId,
      device: run.device,
      fence: run.fence,
      exitReason: ending.exitReason,
      ...(run.conversationId !== null && { conversationId: run.conversationId }),
    },
    at: ending.at,
  })
  const { at, exitReason, limitResetsAt = null, providerFailed = false } = ending
  await applyRunEffects(db, run, {
    at,
    world,
    exitReason,
    limitResetsAt,
    providerFailed,
    sessionLost,
    outOfMemory,
    left,
  })
  return true
}

/** A device cannot say a cost that the sum, kept as a whole number, would not hold: a million dollars is the most. */
const nanoOf = (costUsd: string): number => Number(toNanoUsd(costUsd) < mostNano ? toNanoUsd(costUsd) : mostNano)
const mostNano = 1_000_000n * 1_000_000_000n
