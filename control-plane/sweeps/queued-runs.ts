import type { Tx } from '../db/open.ts'
import { finishRun } from '../lifecycle/end-run.ts'
import { loadPlacementFacts } from '../placement/facts.ts'
import { placeAll, placeRun } from '../placement/placement.ts'
import { listWaiting, type WaitingRun } from '../placement/waiting-store.ts'
import { listExpiredOffers, withdrawOffer } from '../resources/runs/lease-store.ts'
import { lockRun, setUngatedSince } from '../resources/runs/store.ts'
import type { Sweep, SweepContext } from './sweeper.ts'
import { inTransaction } from '../db/transaction.ts'

export interface QueuedRunsOptions {
  dispatchMs: number
  gateMs: number
  leaseMs: number
  everyMs: number
  /** Offers the waiting runs of a workspace. */
  dispatch(workspaceId: string): void
  /** Offers this run again. */
  dispatchRun(runId: string): void
}

/** The number of runs that one round handles, oldest first. */
const runsPerRound = 5_000
/** A gate whose end is known is waited for however long that takes, and this much longer. */
const pastOpeningMs = 3_600_000
/** An offer this long past its time was made by a replica that is gone: a living one withdraws its own. */
const offerGraceMs = 5_000

/**
 * Catches runs that an event missed: offers whose time limit died with their replica, runs that nobody dispatched, and
 * runs that waited too long (`dispatch_timeout`: nothing gates the run and no device took it; `gate_timeout`: a gate
 * held it).
 */
export function queuedRunsSweep(options: QueuedRunsOptions): Sweep {
  return {
    name: 'queued_runs',
    everyMs: options.everyMs,
    async run(context) {
      const { root, now, lines } = context
      for (const { runId, fence } of await listExpiredOffers(root, now - offerGraceMs, runsPerRound))
        lines.add(runId, async () => {
          if (await withdrawOffer(root, runId, fence)) options.dispatchRun(runId)
        })
      const waiting = await listWaiting(root, { after: null, limit: runsPerRound })
      for (const [workspaceId, runs] of Map.groupBy(waiting, (run) => run.workspaceId)) {
        const facts = await loadPlacementFacts(root, workspaceId, { now, leaseMs: options.leaseMs })
        const { placed } = placeAll(runs, facts)
        const ungated = new Set(placed.map(({ run }) => run))
        const opensAt = (run: WaitingRun) => {
          const placement = placeRun(run.facts, facts)
          return placement.kind === 'gate' ? (placement.opensAt ?? null) : null
        }
        for (const run of runs) {
          const gate = ungated.has(run) ? null : { opensAt: opensAt(run) }
          lines.add(workspaceId, () => sweepOne(context, run, { gate, options }), run.id)
        }
        // Added behind them, as some may have waited for too long.
        if (ungated.size > 0) lines.add(workspaceId, async () => options.dispatch(workspaceId), 'dispatch')
      }
    },
  }
}

async function sweepOne(
  context: SweepContext,
  run: WaitingRun,
  { gate, options }: { gate: { opensAt: number | null } | null; options: QueuedRunsOptions },
): Promise<void> {
  const { root, now } = context
  if (gate !== null) {
    if (run.ungatedSince !== null) await setUngatedSince(root, run.id, null)
    if (now > Math.max(run.createdAt + options.gateMs, (gate.opensAt ?? 0) + pastOpeningMs))
      await expire(context, run, { reason: 'gate_timeout', message: 'The run waited too long to start.' })
  } else if (run.ungatedSince === null) await setUngatedSince(root, run.id, now)
  else if (now - run.ungatedSince > options.dispatchMs)
    await expire(context, run, { reason: 'dispatch_timeout', message: 'No device picked the run up.' })
}

async function expire(
  { root, world }: SweepContext,
  waiting: WaitingRun,
  { reason, message }: { reason: 'gate_timeout' | 'dispatch_timeout'; message: string },
): Promise<void> {
  const end = async (tx: Tx) => {
    const run = await lockRun(tx, waiting.id)
    if (!run || run.leaseState !== 'none' || run.ungatedSince !== waiting.ungatedSince) return
    await finishRun(tx, run, {
      fence: null,
      exitReason: reason,
      errorCode: reason,
      errorMessage: message,
      at: world.now(),
      world,
    })
  }
  await inTransaction(root, end, { turns: [waiting.workspaceId] })
}
