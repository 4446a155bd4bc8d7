import type { World } from '../../../shared/lib/world.ts'
import { inOneTrip } from '../../db/one-trip.ts'
import { publish } from '../../db/transaction.ts'
import type { Db } from '../../db/open.ts'
import { monthOf, toNanoUsd } from '../../catalog/price.ts'
import { recordSpend } from '../../resources/agents/spend-store.ts'
import { recordLastRun } from '../../resources/agents/store.ts'
import { findLeftByRun } from '../../resources/approvals/run-ended-store.ts'
import { endedAtOf } from '../../resources/runs/rules.ts'
import type { RunRow } from '../../resources/runs/store.ts'
import { changeRun } from '../change-store.ts'
import { phaseOf, type RunEvent, type RunEnding } from '../life.ts'
import { effectsOf } from '../machine.ts'
import { applyRunEffects } from '../effects.ts'

type EndingEvent = Extract<RunEvent, RunEnding>
type Without<Event, Key extends string> = Event extends unknown ? Omit<Event, Key> : never

/** An ending event of the machine, with what is told of it besides. */
export type Ending = Without<EndingEvent, 'endedAt'> & {
  world: World
  /** The time at which the control plane ends the run. */
  at: number
  /** The time since the run ended on its device, by the device's own report. */
  endedAgoMs?: number | undefined
  /** The run's sandbox had no memory left, by the report of the runner in it. */
  outOfMemory?: boolean
  /** The session that it was to go on with is gone, so nothing was done. */
  sessionLost?: boolean
}

/**
 * Ends a run, adds its cost to what its agent spent, and tells everybody whom it concerns, its device included, in the caller's
 * transaction. False when the machine refuses the ending: the run had ended already.
 */
export async function finishRun(
  db: Db,
  run: RunRow,
  { world, at, endedAgoMs = 0, sessionLost = false, outOfMemory = false, ...ending }: Ending,
): Promise<boolean> {
  const endedAt = endedAtOf(run, { heardAt: at, agoMs: endedAgoMs })
  // The second one does nothing unless the first one has ended the run.
  const [isEnded, , left] = await inOneTrip(db, [
    () => changeRun(db, run.id, { ...ending, endedAt }),
    () => recordLastRun(db, run, at),
    () => findLeftByRun(db, run),
  ])
  if (!isEnded) return false
  const costUsd = ending.usage === undefined ? run.costUsd : (ending.usage?.costUsd ?? null)
  if (costUsd !== null) await recordSpend(db, run.agentRef, { month: monthOf(at), nanoUsd: nanoOf(costUsd) })
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
    at,
  })
  const { exitReason, limitResetsAt = null, providerFailed = false } = ending
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
  const phase = phaseOf(run)
  if (effectsOf(ending.type, phase).includes('tell_device')) {
    const payload = phase === 'offered' ? { payload: { withdrawn: true } } : {}
    await publish(db, { topic: 'run.cancel', key: run.id, ...payload, at })
  }
  return true
}

/** A device cannot say a cost that the sum, kept as a whole number, would not hold: a million dollars is the most. */
const nanoOf = (costUsd: string): number => Number(toNanoUsd(costUsd) < mostNano ? toNanoUsd(costUsd) : mostNano)
const mostNano = 1_000_000n * 1_000_000_000n
