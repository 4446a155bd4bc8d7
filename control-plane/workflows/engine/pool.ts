import type { World } from '../../../shared/lib/world.ts'
import type { Log } from '../../process/log.ts'
import { WorkerPool, type PoolLimits } from '../../process/worker-pool.ts'
import type { EngineJobs } from './words.ts'

/**
 * The limits beside those of the engine itself, which ends loops after 2 s of processor time: what it cannot interrupt is
 * ended with its thread.
 */
const poolLimits: PoolLimits = {
  workers: 2,
  jobMs: 10_000,
  longestMs: 60_000,
  // The engine's memory lies outside of the heap.
  heapMb: 192,
  perCaller: 256,
  waitingBytes: 64 * 1024 * 1024,
  waitMs: 30_000,
  idleMs: 30_000,
  reserve: 1,
}

/** Runs and compiles programs in worker threads. */
export class EnginePool extends WorkerPool<{ [Name in keyof EngineJobs]: EngineJobs[Name] }> {
  constructor({ world, log, limits }: { world: World; log: Log; limits?: Partial<PoolLimits> }) {
    super({
      world,
      log,
      limits: { ...poolLimits, ...limits },
      program: 'control-plane/workflows/engine',
      work: 'a program',
    })
  }
}
