import type { Knex } from 'knex'
import type { World } from '../shared/lib/world.ts'
import type { Blobs } from './blobs/blobs.ts'
import type { Cloud } from './cloud.ts'
import type { Bus } from './db/bus.ts'
import type { ServerConfig } from './config.ts'
import type { Dispatcher } from './run/offers/dispatcher.ts'
import type { Log } from './process/log.ts'
import type { RenewalDependencies } from './resources/connections/renewal.ts'
import type { EmbeddingFiller } from './search/embeddings/filler.ts'
import { BackgroundJobs } from './sweeps/background-jobs.ts'
import { blobsSweep } from './sweeps/blobs.ts'
import { dueAutomationsSweep, overdueQuestionsSweep, quotasSweep, scheduledTasksSweep } from './sweeps/due.ts'
import { embeddingsSweep } from './sweeps/embeddings.ts'
import { expiredApprovalsSweep } from './sweeps/expired-approvals.ts'
import { idleCompactionSweep } from './run/sweeps/idle-compaction.ts'
import { lapsedConnectionsSweep } from './sweeps/lapsed-connections.ts'
import { oldRowsSweep, oldSkipsSweep } from './sweeps/old-rows.ts'
import { purgedFilesSweep } from './sweeps/purged-files.ts'
import { retentionSweep, removedLogsJob } from './sweeps/retention.ts'
import { retiredBundlesSweep } from './sweeps/retired-bundles.ts'
import { removalJobs } from './sweeps/removals.ts'
import type { WaitingRuns } from './run/sweeps/waiting-runs.ts'
import { queuedRunsSweep } from './run/sweeps/queued-runs.ts'
import { runningRunsSweep } from './run/sweeps/running-runs.ts'
import { statisticsSweep } from './sweeps/statistics.ts'
import { Sweeper, type Sweep, type SweepObserver } from './sweeps/sweeper.ts'
import { withdrawalsSweep } from './sweeps/withdrawals.ts'
import { workflowsSweep } from './sweeps/workflows.ts'
import type { Advancer } from './workflows/advance/advancer.ts'
import type { WakeContext } from './run/wakes/wake.ts'
import type { Waker } from './run/wakes/waker.ts'

/** What is old enough to go has time. */
const retentionMs = 60_000
/** A busy server may be held up for less. */
const shortestSleepMs = 10_000

/** Creates all sweeps and background jobs. A new part adds its own to the lists. */
export function createSweeper(options: {
  root: Knex
  world: World
  log: Log
  bus: Bus
  config: ServerConfig
  dispatcher: Dispatcher
  waker: Waker
  /** Those of GitHub and of webhooks. */
  others: readonly Sweep[]
  wakeContext: WakeContext
  advancer: Advancer
  blobs: Blobs
  /** null: there is no model. */
  filler: EmbeddingFiller | null
  cloud: Pick<Cloud, 'sweeps'>
  /** The means to tell providers of tokens whose connections are gone. */
  connections: RenewalDependencies
  /** A jump of the clock says that the machine slept. */
  noticesSleep: boolean
  /** Is told how sweeps go, and keeps what that of queued runs found. */
  watch: { readonly sweeps: SweepObserver; readonly waitingRuns: WaitingRuns }
}): Sweeper {
  const { root, world, log, config, dispatcher, waker, advancer } = options
  const everyMs = config.sweepMs
  const soonMs = Math.min(1_000, everyMs)
  const jobs = new BackgroundJobs({
    ...options,
    jobs: [...removalJobs({ world, leaseMs: config.leaseMs }), removedLogsJob],
  })
  return new Sweeper({
    root,
    world,
    log,
    jobs,
    tickMs: soonMs,
    observer: options.watch.sweeps,
    ...(options.noticesSleep && { jumpMs: Math.max(config.leaseMs, shortestSleepMs) }),
    sweeps: [
      queuedRunsSweep({
        dispatchMs: config.dispatchMs,
        gateMs: config.gateMs,
        leaseMs: config.leaseMs,
        everyMs,
        found: options.watch.waitingRuns,
        dispatch: (workspaceId) => dispatcher.capacityChanged(workspaceId),
        dispatchRun: (runId) => dispatcher.runQueued(runId),
      }),
      runningRunsSweep({
        runnerLostMs: config.runnerLostMs,
        runMs: config.runLimits.runMs,
        everyMs,
        graceMs: config.leaseMs,
      }),
      quotasSweep({ everyMs: soonMs, dispatch: (workspaceId) => dispatcher.capacityChanged(workspaceId) }),
      { name: 'waiting_wakes', everyMs, run: async () => waker.queueWaiting(), idle: () => waker.idle() },
      scheduledTasksSweep({ everyMs: soonMs }),
      overdueQuestionsSweep({ everyMs: soonMs }),
      dueAutomationsSweep({ everyMs: soonMs, context: options.wakeContext }),
      idleCompactionSweep({ everyMs, context: options.wakeContext }),
      workflowsSweep({
        everyMs,
        leaseMs: config.leaseMs,
        runsPrograms: config.runsWorkflows,
        advanceSoon: (run) => advancer.advanceSoon(run),
        idle: () => advancer.idle(),
      }),
      jobs.sweep(everyMs),
      oldSkipsSweep,
      ...options.others,
      ...options.cloud.sweeps,
      purgedFilesSweep({ blobs: options.blobs, everyMs }),
      lapsedConnectionsSweep({ everyMs }),
      withdrawalsSweep({ deps: options.connections, everyMs }),
      retiredBundlesSweep({ blobs: options.blobs, everyMs }),
      ...(options.filler === null ? [] : [embeddingsSweep({ filler: options.filler, everyMs: soonMs })]),
      retentionSweep({ keep: config.keep, blobs: options.blobs, everyMs: retentionMs }),
      blobsSweep({ blobs: options.blobs, everyMs }),
      expiredApprovalsSweep,
      oldRowsSweep,
      statisticsSweep,
    ],
  })
}
