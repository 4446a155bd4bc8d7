import { runLimits } from '../../shared/device/limits.ts'
import type { Supervisor } from '../run/supervisor.ts'

/** The device stops its harnesses this long before the control plane would give them up. */
const silentMarginMs = 5 * 60_000

/** Ends the runs that may not go on because nothing was heard from the control plane for so long. */
export function endSilentRuns(supervisor: Pick<Supervisor, 'active' | 'handle'>, silentMs: number): void {
  const stop = { exitReason: 'runner_lost', message: 'The control plane was out of reach for too long.' } as const
  for (const { runId, spec } of supervisor.active()) {
    const limit = spec.limits.silentMs ?? runLimits.silentMs
    if (silentMs >= Math.max(limit - silentMarginMs, limit / 2))
      supervisor.handle(runId, { type: 'cancel_received', stop })
  }
}
