import type { RunId } from '../../../shared/lib/ids.ts'
import type { World } from '../../../shared/lib/world.ts'
import { inOneTrip } from '../../db/one-trip.ts'
import { publish } from '../../db/transaction.ts'
import type { Db } from '../../db/open.ts'
import { monthOf, toNanoUsd } from '../../catalog/price.ts'
import { recordSpend } from '../../resources/agents/spend-store.ts'
import { recordLastRun, recordLastRuns } from '../../resources/agents/store.ts'
import { findLeftByRun, listLeftByRuns, type LeftByRun } from '../../resources/approvals/run-ended-store.ts'
import { endedAtOf } from '../../resources/runs/rules.ts'
import type { RunRow } from '../../resources/runs/store.ts'
import { changeRun, changeRuns } from '../change-store.ts'
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

/** A run as it was read, with how it ends. */
export interface RunToEnd {
  run: RunRow
  ending: Ending
}

/**
 * Ends a run, adds its cost to what its agent spent, and tells everybody whom it concerns, its device included, in the caller's
 * transaction. False when the machine refuses the ending: the run had ended already.
 */
export async function finishRun(db: Db, run: RunRow, ending: Ending): Promise<boolean> {
  const event = eventOf({ run, ending })
  // The second one does nothing unless the first one has ended the run.
  const [isEnded, , left] = await inOneTrip(db, [
    () => changeRun(db, run.id, event),
    () => recordLastRun(db, { ...run, endedAt: event.endedAt }, ending.at),
    () => findLeftByRun(db, run.id),
  ])
  if (isEnded) await tellEnding(db, { run, ending }, left)
  return isEnded
}

/**
 * Ends several runs, each of which is named once and all at the same time (`at`): first their rows, then in their order what each ending does
 * elsewhere. Returns the runs that ended.
 */
export async function finishRuns(db: Db, ends: readonly [RunToEnd, ...RunToEnd[]]): Promise<Set<RunId>> {
  const [first, ...others] = ends
  if (others.length === 0) return new Set((await finishRun(db, first.run, first.ending)) ? [first.run.id] : [])
  const changes = ends.map((end) => ({ id: end.run.id, event: eventOf(end) }))
  const changed = await changeRuns(db, changes)
  const ended = ends.filter(({ run }) => changed.has(run.id))
  const [, left] = await inOneTrip(db, [
    () => recordLastRuns(db, agentsOf(ended), first.ending.at),
    () => listLeftByRuns(db, [...changed]),
  ])
  for (const end of ended) await tellEnding(db, end, left.get(end.run.id)!)
  return changed
}

const agentsOf = (ends: readonly RunToEnd[]) => ends.map(({ run }) => run.agentRef)

function eventOf({ run, ending }: RunToEnd): EndingEvent {
  const { world: _, at, endedAgoMs = 0, sessionLost: _lost, outOfMemory: _memory, ...event } = ending
  return { ...event, endedAt: endedAtOf(run, { heardAt: at, agoMs: endedAgoMs }) }
}

/** Does what the ending of a run does elsewhere, once its row is written. */
async function tellEnding(db: Db, { run, ending }: RunToEnd, left: LeftByRun): Promise<void> {
  const { world, at, sessionLost = false, outOfMemory = false } = ending
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
}

/** A device cannot say a cost that the sum, kept as a whole number, would not hold: a million dollars is the most. */
const nanoOf = (costUsd: string): number => Number(toNanoUsd(costUsd) < mostNano ? toNanoUsd(costUsd) : mostNano)
const mostNano = 1_000_000n * 1_000_000_000n
