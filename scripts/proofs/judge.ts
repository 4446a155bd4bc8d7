import type { RunEvent } from '../../shared/api/run-events.ts'
import { runLimits } from '../../shared/device/limits.ts'
import type { ExitReason } from '../../shared/runs/exit-reasons.ts'
import { deliveredOutput, endedOnce, numberedWhole } from '../../test/kit/invariants.ts'
import type { Broken, PromiseName } from './promises.ts'

/** Why a run may have ended in another way than its harness did. Each is an ending that the page tells of. */
export interface Excuses {
  /** Its run host was killed. */
  isKilled: boolean
  /** The disk was full in the time of the run. */
  hadFullDisk: boolean
  /** The server was restored from a backup that is older than the run's end. */
  isRestored: boolean
}

export interface RunFacts {
  runId: string
  /** null: no ending was told in time. */
  exitReason: string | null
  events: readonly RunEvent[]
  /** How often the harness was started, by its own account. */
  starts: number
  /** Whether the harness came to its end. */
  isDone: boolean
  /** What the harness prints when it comes to its end. */
  printed: string
  /** Compares the change-set with the folder, and fails where they differ; null: the run has none, for a reason that it tells. */
  compareChanges: (() => void) | null
  excuses: Excuses
}

/** Without room its harness cannot be launched, and the run says so. */
const launchFailures = ['dispatch_error', 'harness_start_failed']

/** Which promises a run that was asked for breaks. */
export function judge(facts: RunFacts): Broken[] {
  const broken: Broken[] = []
  const attempt = (promise: PromiseName, check: () => void) => {
    try {
      check()
    } catch (error) {
      broken.push({ promise, runId: facts.runId, why: error instanceof Error ? error.message : String(error) })
    }
  }
  const { exitReason, excuses, starts, isDone } = facts
  attempt('starts', () => demand(starts <= 1, `its harness was started ${starts} times`))
  attempt('truth', () => truth(facts))
  if (exitReason === null) return broken
  const isComplete = exitReason === 'completed'
  if (isComplete) attempt('starts', () => demand(starts === 1, `it is complete, and its harness was not started`))
  // The ending of a run that the device does not know any more is the server's, which has no more of it.
  const isTheServers = exitReason === 'runner_lost' && excuses.isRestored
  if (!isTheServers) {
    attempt('ending', () => endedOnce(facts.events, exitReason))
    attempt('events', () => {
      numberedWhole(facts.events)
      if (excuses.isRestored) return
      const mayHaveGaps = excuses.hadFullDisk
      deliveredOutput(facts.events, { output: facts.printed, isCutOff: !isComplete || !isDone, mayHaveGaps })
    })
  }
  if (facts.compareChanges !== null) attempt('changes', facts.compareChanges)
  return broken
}

/** The ending is the harness's own, or one of those that the faults which the run met explain. */
function truth({ exitReason, isDone, excuses }: RunFacts): void {
  if (exitReason === null) throw new Error('it has no ending')
  if (exitReason === 'completed')
    return demand(isDone, 'it is told as complete, and its harness did not come to its end')
  const excused =
    (excuses.isKilled && exitReason === 'crashed') ||
    (excuses.hadFullDisk && launchFailures.includes(exitReason)) ||
    (excuses.isRestored && exitReason === 'runner_lost')
  demand(excused, `it ended as ${exitReason}, which nothing explains that happened to it`)
}

function demand(isSo: boolean, why: string): void {
  if (!isSo) throw new Error(why)
}

/** How a run ended by its own account, on the device. */
export interface OwnEnding {
  exitReason: ExitReason
  endedAt: number
}

/** The sweep that gives runs up comes so late at most, and so near to it either ending is true. */
const sweepMs = 5 * 60_000
/** The strides of a clock that is hastened, and what is told of an end to the second. */
const endedAtWithinMs = 12_000

/** Why the ending of a run is not the true one, which ended while something was away; null: it is. */
export function whyUntrue(
  { exitReason, endedAt }: OwnEnding,
  run: { exitReason: string | null; completedAt: string | null } | null,
  { isServerAway, silentMs }: { isServerAway: boolean; silentMs: number },
): string | null {
  const about = `(away for ${Math.round(silentMs / 1_000)} s)`
  if (run === null) return `it has no ending ${about}`
  // The server is up, hears nothing of the device for an hour, and gives the run up: that is its ending from then on.
  const mayBeLost = !isServerAway && silentMs > runLimits.silentMs - sweepMs
  const mustBeLost = !isServerAway && silentMs > runLimits.silentMs + sweepMs
  if (run.exitReason === 'runner_lost' && mayBeLost) return null
  if (mustBeLost || run.exitReason !== exitReason)
    return `it ended as ${exitReason}, and is told as ${run.exitReason} ${about}`
  const apartMs = Math.abs(Date.parse(run.completedAt ?? '') - endedAt)
  return apartMs <= endedAtWithinMs
    ? null
    : `its end is told ${Math.round(apartMs / 1_000)} s from when it was ${about}`
}
