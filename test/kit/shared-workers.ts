import { CostlyPool, poolLimits } from '../../control-plane/costly/pool.ts'
import { silentLog } from '../../control-plane/process/log.ts'
import { EnginePool } from '../../control-plane/workflows/engine/pool.ts'
import { realWorld } from '../../shared/lib/world.ts'

/** Limits of costly work in tests: a machine that is busy with all of them at once refuses nothing for want of a processor. */
export const costlyLimits = { ...poolLimits, waitMs: 60_000, longestMs: 60_000 }

let shared: { costly: CostlyPool; engine: EnginePool } | null = null

/**
 * The workers of all servers of this process. One takes a quarter of a second of processor time to start, which is more than
 * most tests take. They keep nothing of one job for the next; those that have nothing to do keep no process alive.
 */
export function sharedWorkers(): { costly: CostlyPool; engine: EnginePool } {
  const common = { world: realWorld, log: silentLog }
  return (shared ??= {
    costly: new CostlyPool({ ...common, limits: costlyLimits }),
    engine: new EnginePool(common),
  })
}
