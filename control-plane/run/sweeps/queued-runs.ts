import type { GateReason } from '../../../shared/api/agent-runs.ts'
import type { RunId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { inPages } from '../../db/table.ts'
import type { Tx } from '../../db/open.ts'
import { finishRun } from '../endings/end-run.ts'
import { loadPlacementFacts } from '../placement/facts.ts'
import { placeOfRun } from '../places/places.ts'
import { placeAll, placeRun } from '../placement/placement.ts'
import { listWaiting, listWaitingWorkspaces, type WaitingRun } from '../placement/waiting-store.ts'
import { listExpiredOffers } from '../../resources/runs/lease-store.ts'
import { gatedUntil } from '../../resources/runs/rules.ts'
import { lockRun } from '../../resources/runs/store.ts'
import { changeRun } from '../change-store.ts'
import { WaitingCount, type WaitingRuns } from './waiting-runs.ts'
import type { Sweep, SweepContext } from '../../sweeps/sweeper.ts'
import { inTransaction } from '../../db/transaction.ts'

export interface QueuedRunsOptions {
  dispatchMs: number
  gateMs: number
  leaseMs: number
  everyMs: number
  /** Where each round leaves what it found. */
  found?: WaitingRuns
  /** Offers the waiting runs of a workspace. */
  dispatch(workspaceId: WorkspaceUuid): void
  /** Offers this run again. */
  dispatchRun(runId: RunId): void
}

/** The number of expired offers that one round handles. */
const offersPerRound = 5_000
/** Waiting runs of a workspace that are read at once. */
const pageSize = 500
/** An offer this long past its time was made by a replica that is gone: a living one withdraws its own. */
const offerGraceMs = 5_000

/**
 * Catches runs that an event missed: offers whose time limit died with their replica, runs that nobody dispatched, and
 * runs that waited too long (`dispatch_timeout`: nothing gates the run and no device took it; `gate_timeout`: a gate
 * held it).
 * Each workspace is swept in a queue of its own and to its end, since any number of its runs may wait for a day.
 */
export function queuedRunsSweep(options: QueuedRunsOptions): Sweep {
  return {
    name: 'queued_runs',
    everyMs: options.everyMs,
    async run(context) {
      const { root, now, queue } = context
      for (const { runId, fence } of await listExpiredOffers(root, now - offerGraceMs, offersPerRound))
        queue.add(runId, async () => {
          if (await changeRun(root, runId, { type: 'offer_withdrawn', fence, why: 'not_answered' }))
            options.dispatchRun(runId)
        })
      const workspaceIds = await listWaitingWorkspaces(root)
      options.found?.keep(workspaceIds)
      for (const workspaceId of workspaceIds)
        queue.add(workspaceId, () => sweepWorkspace(context, workspaceId, options), 'waiting')
    },
  }
}

async function sweepWorkspace(
  context: SweepContext,
  workspaceId: WorkspaceUuid,
  options: QueuedRunsOptions,
): Promise<void> {
  const { root, world, queue } = context
  const now = world.now()
  const facts = await loadPlacementFacts(root, workspaceId, { now, leaseMs: options.leaseMs })
  // A run that only others before it keep from its place waits for room.
  const gateOf = (run: WaitingRun): HeldBy => {
    const placement = placeRun(run.facts, facts)
    return placement.kind === 'gate'
      ? { reason: placement.reason, opensAt: placement.opensAt ?? null }
      : { reason: 'capacity', opensAt: null }
  }
  const count = new WaitingCount()
  // The room that the runs of one page would take is taken for those of the next.
  let room = facts
  let isAnyUngated = false
  const waiting = inPages<WaitingRun>(pageSize, (next) => listWaiting(root, { workspaceId, after: null, ...next }))
  for await (const page of waiting) {
    const { placed, wanting, left } = placeAll(page, room)
    room = left
    const ungated = new Set([...placed.map(({ run }) => run), ...wanting])
    isAnyUngated ||= ungated.size > 0
    for (const run of page) {
      const isBeingMade = placeOfRun(run.facts).isBeingMade(run.facts)
      const gate = isBeingMade || ungated.has(run) ? null : gateOf(run)
      count.add(isBeingMade ? 'sandbox' : (gate?.reason ?? 'none'), run.createdAt)
      const due = isBeingMade ? null : dueOf(run, { gate, now, options })
      if (due !== null) queue.add(workspaceId, () => act(context, run, { due, gate, now }), run.id)
    }
  }
  options.found?.record(workspaceId, count)
  // The dispatch is added behind them, as some may have waited for too long.
  if (isAnyUngated) queue.add(workspaceId, async () => options.dispatch(workspaceId), 'dispatch')
}

interface HeldBy {
  reason: GateReason
  opensAt: number | null
}

type Due = 'gated' | 'ungated' | 'gate_timeout' | 'dispatch_timeout'

/** Returns what is due for the run; null: it goes on waiting as it does. */
function dueOf(
  run: WaitingRun,
  { gate, now, options }: { gate: HeldBy | null; now: number; options: QueuedRunsOptions },
): Due | null {
  if (gate !== null) {
    if (run.ungatedSince !== null) return 'gated'
    return now > gatedUntil(run, { opensAt: gate.opensAt, gateMs: options.gateMs }) ? 'gate_timeout' : null
  }
  if (run.ungatedSince === null) return 'ungated'
  return now - run.ungatedSince > options.dispatchMs ? 'dispatch_timeout' : null
}

async function act(
  context: SweepContext,
  run: WaitingRun,
  { due, gate, now }: { due: Due; gate: HeldBy | null; now: number },
): Promise<void> {
  const { root, log } = context
  // The line has the names that those of other changes have (`run-log.ts`).
  const fields = { runId: run.id, workspaceId: run.workspaceId, agentId: run.facts.agentRef }
  if (due === 'gated') {
    if (await changeRun(root, run.id, { type: 'gate_closed' })) log.info({ ...fields, gate: gate?.reason }, 'run held')
  } else if (due === 'ungated') {
    if (await changeRun(root, run.id, { type: 'gate_opened', at: now })) log.info(fields, 'run held by nothing')
  } else {
    if (gate !== null) log.info({ ...fields, gate: gate.reason }, 'run held too long')
    await expire(context, run, due)
  }
}

const messages = {
  gate_timeout: 'The run waited too long to start.',
  dispatch_timeout: 'No device picked the run up.',
} as const

async function expire(
  { root, world }: SweepContext,
  waiting: WaitingRun,
  reason: keyof typeof messages,
): Promise<void> {
  const end = async (tx: Tx) => {
    const run = await lockRun(tx, waiting.id)
    if (!run || run.leaseState !== 'none' || run.ungatedSince !== waiting.ungatedSince) return
    await finishRun(tx, run, {
      type: 'waited_too_long',
      exitReason: reason,
      errorMessage: messages[reason],
      at: world.now(),
      world,
    })
  }
  await inTransaction(root, end, { locks: [waiting.workspaceId] })
}
