import { inPages } from '../../db/table.ts'
import type { Db, Tx } from '../../db/open.ts'
import type { ExitReason } from '../../../shared/runs/exit-reasons.ts'
import { finishRun } from '../endings/end-run.ts'
import { findDeviceByPublicId } from '../../resources/devices/store.ts'
import { listRunning } from '../../resources/runs/live-store.ts'
import { findRun, type RunRow } from '../../resources/runs/store.ts'
import type { Sweep, SweepContext } from '../../sweeps/sweeper.ts'
import { inTransaction } from '../../db/transaction.ts'

export interface RunningRunsOptions {
  runnerLostMs: number
  runMs: number
  everyMs: number
  /** No device is judged before the server has been awake this long: after a restart or a sleep all of them were silent. */
  graceMs: number
}

/** The time a device has to stop its run before the control plane ends the run itself. */
const stopMs = 5 * 60_000
const pageSize = 500

/**
 * Ends runs whose device was away for too long (`runner_lost`), or that exceeded their time although the device should
 * have ended them (`timeout`). A device that comes back later is refused by its fence.
 */
export function runningRunsSweep(options: RunningRunsOptions): Sweep {
  return {
    name: 'running_runs',
    everyMs: options.everyMs,
    async run(context) {
      if (context.now - context.awakeSince() < options.graceMs) return
      for await (const page of inPages<RunRow>(pageSize, (next) => listRunning(context.root, { after: null, ...next })))
        for (const run of page) context.queue.add(run.workspaceId, () => look(context, run, options), run.id)
    },
  }
}

/** Judges without a transaction at first, since nearly all runs go on. */
async function look(context: SweepContext, run: RunRow, options: RunningRunsOptions): Promise<void> {
  const now = context.world.now()
  if (await judge(context.root, run, { now, awakeSince: context.awakeSince(), options }))
    await end(context, run, options)
}

interface EndedByTime {
  reason: ExitReason
  message: string
}

/** Judges the run again as it is now, since it may have changed after it was listed. */
async function end(context: SweepContext, listed: RunRow, options: RunningRunsOptions): Promise<void> {
  const { root, world, log } = context
  const [now, awakeSince] = [world.now(), context.awakeSince()]
  const endIt = async (tx: Tx): Promise<EndedByTime | null> => {
    const run = await findRun(tx, listed.id)
    const ending = run?.status === 'running' ? await judge(tx, run, { now, awakeSince, options }) : null
    if (run === null || ending === null) return null
    const ended = await finishRun(tx, run, {
      type: 'ended_by_time',
      exitReason: ending.reason,
      errorMessage: ending.message,
      at: now,
      world,
    })
    return ended ? ending : null
  }
  const ending = await inTransaction(root, endIt, { locks: [listed.workspaceId] })
  if (ending !== null) log.warn({ runId: listed.id, exitReason: ending.reason }, 'run ended by time')
}

async function judge(
  db: Db,
  run: RunRow,
  { now, awakeSince, options }: { now: number; awakeSince: number; options: RunningRunsOptions },
): Promise<EndedByTime | null> {
  if (run.startedAt !== null && now - run.startedAt > options.runMs + stopMs)
    return { reason: 'timeout', message: 'The run took longer than a run may take.' }
  const device = run.device === null ? null : await findDeviceByPublicId(db, run.device)
  const lastHeard = device?.lastHeartbeatAt ?? run.startedAt ?? run.createdAt
  if (!device || now - Math.max(lastHeard, awakeSince) > options.runnerLostMs)
    return { reason: 'runner_lost', message: 'The device that held the run stopped reporting.' }
  if (run.cancelRequestedAt !== null && now - run.cancelRequestedAt > stopMs)
    return {
      reason: (run.cancelExitReason ?? 'interrupted') as ExitReason,
      message: run.cancelReason ?? 'The device did not confirm that it ended the run.',
    }
  return null
}
