import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../process/log.ts'
import { WorkerPool, type PoolLimits } from '../process/worker-pool.ts'
import type { jobs } from './jobs.ts'

export const poolLimits: PoolLimits = {
  workers: 2,
  jobMs: 2_000,
  longestMs: 30_000,
  heapMb: 128,
  perCaller: 32,
  waitingBytes: 32 * 1024 * 1024,
  waitMs: 10_000,
  idleMs: 30_000,
  reserve: 0,
}

/** Does the jobs of `jobs.ts` in worker threads. */
export class CostlyPool extends WorkerPool<typeof jobs> {
  constructor({ world, log, limits }: { world: World; log: Log; limits?: Partial<PoolLimits> }) {
    super({ world, log, limits: { ...poolLimits, ...limits }, program: 'control-plane/costly', work: 'costly work' })
  }
}
