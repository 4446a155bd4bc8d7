import type { ClaimState } from '../../shared/device/protocol.ts'
import type { Journal } from '../run/journal.ts'
import type { DaemonSpool } from '../spool/standing-spool.ts'

/** Room in the spool below which the device takes no new run. */
const leastFreeBytes = 32 * 1024 * 1024

export interface ClaimFacts {
  isDraining: boolean
  activeRuns: number
  capacity: number
  spool: Pick<DaemonSpool, 'freeBytes'>
  journal: Pick<Journal, 'trouble'>
  spoolPages: number
}

/** Says whether the device takes runs now, and why not. */
export function claimStateOf(facts: ClaimFacts): ClaimState {
  const reason = refusalOf(facts)
  return { accepting: reason === null, reason, message: null, activeRuns: facts.activeRuns }
}

function refusalOf({ isDraining, activeRuns, capacity, spool, journal, spoolPages }: ClaimFacts): ClaimState['reason'] {
  if (isDraining) return 'draining'
  let free: number | null
  try {
    free = spool.freeBytes()
  } catch {
    return 'spool_unavailable'
  }
  // A small spool (its size is a setting) keeps a quarter free instead.
  const leastFree = Math.min(leastFreeBytes, (spoolPages * 16_384) / 4)
  if (free !== null && free < leastFree) return 'disk_full'
  const trouble = journal.trouble()
  if (trouble !== null) return trouble
  return activeRuns >= capacity ? 'capacity' : null
}
