import { runLimits } from '../../shared/device/limits.ts'
import type { RunState } from '../run/machine.ts'

/** The device stops its harnesses this long before the control plane would give them up. */
const silentMarginMs = 5 * 60_000

/** Those of the runs that end because nothing was heard from the control plane for so long. */
export const runsGivenUp = (active: readonly RunState[], silentMs: number): RunState[] =>
  active.filter(({ spec }) => {
    const limit = spec.limits.silentMs ?? runLimits.silentMs
    return silentMs >= Math.max(limit - silentMarginMs, limit / 2)
  })
