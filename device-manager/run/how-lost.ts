import type { DaemonSpool } from '../spool/standing-spool.ts'
import type { HostRecords } from './hosts/host-records.ts'
import type { RunState } from './machine.ts'

/**
 * Says what the end of a run's host means. One that finished writes its ending, says so and leaves; what it said may have been
 * cut off by its leaving. One that left in order without an ending had launched nothing, as far as the spool is whole.
 */
export function howLost(
  state: RunState,
  { spool, records }: { spool: Pick<DaemonSpool, 'ending' | 'isWhole'>; records: Pick<HostRecords, 'hasLeftInOrder'> },
): 'host_ended' | 'host_left' | 'host_lost' | 'found_without_host' {
  try {
    if (spool.ending(state)) return 'host_ended'
  } catch {
    // Nobody knows whether it has its ending.
    return 'host_lost'
  }
  if (state.hostId === null) return 'found_without_host'
  return spool.isWhole && records.hasLeftInOrder(state.hostId) ? 'host_left' : 'host_lost'
}
