import { finishRun } from '../dispatch/end-run.ts'
import { loadPlacementFacts } from '../dispatch/facts.ts'
import { placeAll } from '../dispatch/placement.ts'
import { listWaiting, type WaitingRun } from '../dispatch/waiting-store.ts'
import { listExpiredOffers, withdrawOffer } from '../resources/runs/lease-store.ts'
import { lockRun, setUngatedSince } from '../resources/runs/store.ts'
import { oneByOne } from './one-by-one.ts'
import type { Sweep, SweepContext } from './sweeper.ts'

export interface QueuedRunsOptions {
  dispatchMs: number
  gateMs: number
  leaseMs: number
  everyMs: number
  /** What waits in a workspace may be offered. */
  dispatch(workspaceId: string): void
  /** This run may be offered again. */
  dispatchRun(runId: string): void
}

/** The oldest runs that one round looks at. */
const runsPerRound = 5_000
/** An offer this long over its time was made by a replica that is gone: a living one takes its own back. */
const offerGraceMs = 5_000

/**
 * Catches what an event missed: offers whose time limit died with their replica, runs nobody dispatched, and runs that
 * waited too long (`dispatch_timeout`: nothing gates the run and no device took it; `gate_timeout`: a gate held it).
 */
export function queuedRunsSweep(options: QueuedRunsOptions): Sweep {
  return {
    name: 'queued_runs',
    everyMs: options.everyMs,
    async run(context) {
      const { root, now } = context
      for (const { runId, fence } of await listExpiredOffers(root, now - offerGraceMs, runsPerRound))
        if (await withdrawOffer(root, runId, fence)) options.dispatchRun(runId)
      const waiting = await listWaiting(root, { after: null, limit: runsPerRound })
      for (const [workspaceId, runs] of Map.groupBy(waiting, (run) => run.workspaceId)) {
        const facts = await loadPlacementFacts(root, workspaceId, { now, leaseMs: options.leaseMs })
        const { placed } = placeAll(runs, facts)
        const ungated = new Set(placed.map(({ run }) => run))
        await oneByOne(context, runs, (run) => sweepOne(context, run, { isGated: !ungated.has(run), options }))
        if (ungated.size > 0) options.dispatch(workspaceId)
      }
    },
  }
}

async function sweepOne(
  context: SweepContext,
  run: WaitingRun,
  { isGated, options }: { isGated: boolean; options: QueuedRunsOptions },
): Promise<void> {
  const { root, now } = context
  if (isGated) {
    if (run.ungatedSince !== null) await setUngatedSince(root, run.id, null)
    if (now - run.createdAt > options.gateMs)
      await expire(context, run.id, { reason: 'gate_timeout', message: 'The run waited too long to start.' })
  } else if (run.ungatedSince === null) await setUngatedSince(root, run.id, now)
  else if (now - run.ungatedSince > options.dispatchMs)
    await expire(context, run.id, { reason: 'dispatch_timeout', message: 'No device picked the run up.' })
}

async function expire(
  { root, now, world }: SweepContext,
  runId: string,
  { reason, message }: { reason: 'gate_timeout' | 'dispatch_timeout'; message: string },
): Promise<void> {
  await root.transaction(async (tx) => {
    const run = await lockRun(tx, runId)
    if (!run || run.leaseState !== 'none') return
    await finishRun(tx, run, {
      fence: null,
      exitReason: reason,
      errorCode: reason,
      errorMessage: message,
      at: now,
      world,
    })
  })
}
