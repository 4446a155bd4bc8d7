import type { World } from '../../shared/lib/world.ts'
import type { ExitReason } from '../../shared/runs/exit-reasons.ts'
import type { Db } from '../db/open.ts'
import type { LeftByRun } from '../resources/approvals/run-ended-store.ts'
import type { RunRow } from '../resources/runs/store.ts'

/** A further change that the start or the end of a run makes, in the same transaction. */
export type RunEffect = (
  db: Db,
  /** The run as it was before its ending, or as it is after its start. */
  run: RunRow,
  happening: {
    at: number
    world: World
    /** The reason of the ending; null: the run starts. */
    exitReason: ExitReason | null
    /** The time (ms) at which the limit is over, with `rate_limited` and where the harness says it. */
    limitResetsAt?: number | null
    /** The run ended by a failure of its provider. */
    providerFailed?: boolean
    /** The run's sandbox had no memory left. */
    outOfMemory?: boolean
    /** The session that it was to go on with is gone. */
    sessionLost?: boolean
    /** Rows that the run may leave to close; null: the run starts. */
    left: LeftByRun | null
  },
) => Promise<void>

export interface RunEffects {
  started: readonly RunEffect[]
  ended: readonly RunEffect[]
}

let registered: RunEffects | null = null

/** Called by each program before it touches a run; `control-plane/register-run-effects.ts` has the lists. */
export function registerRunEffects(effects: RunEffects): void {
  registered = effects
}

/** Does all that was registered for a start (`exitReason` null) or an ending, in the written order. */
export async function applyRunEffects(...[db, run, happening]: Parameters<RunEffect>): Promise<void> {
  if (registered === null) throw new Error('A run starts or ends in a program that has registered no run effects.')
  for (const effect of happening.exitReason === null ? registered.started : registered.ended)
    await effect(db, run, happening)
}
