import type { ClaimState, DeviceMessage } from '../../shared/device/protocol.ts'
import type { Journal } from '../run/journal.ts'
import type { DaemonSpool } from '../spool/standing-spool.ts'
import type { World } from '../../shared/lib/world.ts'

/** Room in the spool below which the device takes no new run. */
const leastFreeBytes = 32 * 1024 * 1024

interface ClaimFacts {
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

interface ClaimReportsOptions {
  world: Pick<World, 'after'>
  spool: Pick<DaemonSpool, 'runs'>
  claimState(): ClaimState
  send(message: DeviceMessage): boolean
}

/** The interval at which a disk that takes nothing is looked at: nobody tells when it has room again. */
const diskLookMs = 2_000

/** Tells the control plane whether runs are taken: a change at once, not with the next heartbeat. */
export class ClaimReports {
  private readonly options: ClaimReportsOptions
  private last = ''
  private cancelLook: (() => void) | null = null

  constructor(options: ClaimReportsOptions) {
    this.options = options
  }

  report(): void {
    const claimState = this.options.claimState()
    if (claimState.reason === 'disk_full' || claimState.reason === 'spool_unavailable') this.checkAgain()
    const key = `${claimState.accepting} ${claimState.reason}`
    if (key === this.last) return
    if (this.options.send({ type: 'heartbeat', claimState })) this.last = key
  }

  /** Keeps the lease: says it whether or not it was told, with what the spool holds. */
  beat(): boolean {
    const claimState = this.options.claimState()
    return this.options.send({ type: 'heartbeat', claimState, ...spoolBytesOf(this.options.spool) })
  }

  /** Tells it even if it was told last. */
  tell(): void {
    this.last = ''
    this.report()
  }

  stop(): void {
    this.cancelLook?.()
    this.cancelLook = null
  }

  private checkAgain(): void {
    this.cancelLook ??= this.options.world.after(diskLookMs, () => {
      this.cancelLook = null
      this.report()
    })
  }
}

/** A spool that cannot be read keeps the device from no heartbeat; the claim state says that it cannot. */
function spoolBytesOf(spool: Pick<DaemonSpool, 'runs'>): { spoolBytes?: number } {
  try {
    return { spoolBytes: spool.runs().reduce((sum, { bytes }) => sum + bytes, 0) }
  } catch {
    return {}
  }
}
