import type { World } from '../../shared/lib/world.ts'
import type { ExitReason } from '../../shared/runs/exit-reasons.ts'
import type { Db } from '../db/open.ts'
import type { LeftByRun } from '../resources/approvals/run-ended-store.ts'
import type { RunRow } from '../resources/runs/store.ts'

/** A further change that the start or the end of a run makes, in the same transaction. */
export type RunEffect = (
  db: Db,
  /** As it was before its ending; with a start, as it is now. */
  run: RunRow,
  happening: {
    at: number
    world: World
    /** null: the run starts. */
    exitReason: ExitReason | null
    /** With `rate_limited`: when the limit is over (ms), where the harness says. */
    limitResetsAt?: number | null
    /** A failure of its provider ended it. */
    providerFailed?: boolean
    /** Its sandbox had no memory left. */
    outOfMemory?: boolean
    /** The session that it was to go on with is gone. */
    sessionLost?: boolean
    /** What the run may leave to close; null: the run starts. */
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
