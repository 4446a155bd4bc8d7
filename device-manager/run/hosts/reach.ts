import type { World } from '../../../shared/lib/world.ts'
import type { HostRecord } from '../../run-host/wire/protocol.ts'
import { HostConnection, HostRefusedError } from './host-connection.ts'
import type { HostPool } from './host-pool.ts'

/** `hung`: it lives and did not answer in time. `refused`: another daemon has it. */
export type Reached = HostConnection | 'dead' | 'hung' | 'refused' | 'unwanted'

export interface ReachOptions {
  pool: Pick<HostPool, 'connect' | 'records' | 'silentMs'>
  world: Pick<World, 'monotonic' | 'sleep'>
  /** The time for which the host is asked, of that in which this daemon runs. */
  patienceMs: number
  /** Asked before each try. */
  isWanted: () => boolean
}

/**
 * Connects to a host for as long as its process lives and nothing is lost by that: one that is stopped is told to go on, since what it
 * holds (output, the spool's lock) is lost with it. The time for which this daemon itself was stopped does not count
 * as a host's silence.
 *
 *     asked -- no answer for a sixth of `silentMs` --> told to go on -- no answer for the rest of `patienceMs` --> hung
 */
export async function reachHost(record: HostRecord, options: ReachOptions): Promise<Reached> {
  const { pool, world, patienceMs, isWanted } = options
  const tryMs = pool.silentMs / 6
  let silentMs = 0
  for (let pause = 10; isWanted(); pause = Math.min(pause * 2, 500)) {
    const askedAt = world.monotonic()
    if (isDead(pool, record)) return 'dead'
    const host = await pool.connect(record, tryMs).catch((error: unknown) => error)
    if (host instanceof HostConnection) return host
    if (silentMs >= patienceMs) return host instanceof HostRefusedError ? 'refused' : 'hung'
    if (silentMs >= tryMs) signal(pool, record, 'SIGCONT')
    await world.sleep(pause)
    silentMs += Math.min(world.monotonic() - askedAt, tryMs + pause)
  }
  return 'unwanted'
}

/** Ends a host that does not answer: it would write beside the ending that the daemon writes in its place. */
export function endHung(pool: Pick<HostPool, 'records'>, record: HostRecord): void {
  signal(pool, record, 'SIGKILL')
}

function signal(pool: Pick<HostPool, 'records'>, record: HostRecord, name: NodeJS.Signals): void {
  try {
    if (pool.records.isAlive(record)) process.kill(record.pid, name)
  } catch {
    // The host ended just now, or no file is left to look with.
  }
}

function isDead(pool: Pick<HostPool, 'records'>, record: HostRecord): boolean {
  try {
    return !pool.records.isAlive(record)
  } catch {
    // No file is left to look with.
    return false
  }
}
