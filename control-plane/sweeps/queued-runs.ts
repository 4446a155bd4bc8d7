import { finishRun } from '../dispatch/end-run.ts'
import { loadPlacementFacts, loadRunFacts } from '../dispatch/facts.ts'
import { placeRun } from '../dispatch/placement.ts'
import { listLiveRuns } from '../resources/runs/live-store.ts'
import { setUngatedSince, withdrawOffer, type RunRow } from '../resources/runs/store.ts'
import type { Sweep, SweepContext } from './sweeper.ts'

export interface QueuedRunsOptions {
  dispatchMs: number
  gateMs: number
  leaseMs: number
  everyMs: number
  dispatch(runId: string): void
}

/**
 * Catches what an event missed: offers whose time limit died with their replica, runs nobody dispatched, and runs that
 * waited too long (`dispatch_timeout`: nothing gates the run and no device took it; `gate_timeout`: a gate held it).
 */
export function queuedRunsSweep(options: QueuedRunsOptions): Sweep {
  return {
    name: 'queued_runs',
    everyMs: options.everyMs,
    async run(context) {
      const runs = await listLiveRuns(context.root, { status: 'queued', limit: 5_000 })
      const facts = new Map<string, Awaited<ReturnType<typeof loadPlacementFacts>>>()
      for (const run of runs) {
        if (run.leaseState === 'offered') {
          if ((run.offerExpiresAt ?? 0) + 5_000 < context.now && (await withdrawOffer(context.root, run.id, run.fence)))
            options.dispatch(run.id)
          continue
        }
        const known =
          facts.get(run.workspaceId) ??
          (await loadPlacementFacts(context.root, run.workspaceId, {
            now: context.now,
            leaseMs: options.leaseMs,
          }))
        facts.set(run.workspaceId, known)
        const gated = placeRun(await loadRunFacts(context.root, run), known).kind === 'gate'
        await sweepOne(context, run, { gated, options })
      }
    },
  }
}

async function sweepOne(
  context: SweepContext,
  run: RunRow,
  state: { gated: boolean; options: QueuedRunsOptions },
): Promise<void> {
  const { root, now } = context
  const { gated, options } = state
  if (gated) {
    if (run.ungatedSince !== null) await setUngatedSince(root, run.id, null)
    if (now - run.createdAt > options.gateMs)
      await expire(run, { reason: 'gate_timeout', message: 'The run waited too long to start.', context })
    return
  }
  if (run.ungatedSince === null) {
    await setUngatedSince(root, run.id, now)
    options.dispatch(run.id)
  } else if (now - run.ungatedSince > options.dispatchMs)
    await expire(run, { reason: 'dispatch_timeout', message: 'No device picked the run up.', context })
  else options.dispatch(run.id)
}

async function expire(
  run: RunRow,
  why: { reason: 'gate_timeout' | 'dispatch_timeout'; message: string; context: SweepContext },
): Promise<void> {
  const { root, now, world } = why.context
  await root.transaction(async (tx) => {
    await finishRun(tx, run, {
      fence: null,
      exitReason: why.reason,
      errorCode: why.reason,
      errorMessage: why.message,
      at: now,
      world,
    })
  })
}
