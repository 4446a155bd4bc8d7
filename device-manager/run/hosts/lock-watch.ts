import type { World } from '../../../shared/lib/world.ts'
import type { Log } from '../../log/log.ts'
import { writeLockHolders } from '../../process/lock-holders.ts'
import type { Places } from '../../setup/places.ts'
import type { HostRecord } from '../../run-host/wire/protocol.ts'
import type { HostRecords } from './host-records.ts'

export interface LockWatchOptions {
  world: Pick<World, 'after'>
  everyMs: number
  log: Log
  places: Pick<Places, 'spool'>
  spool: { isLocked(): boolean }
  records: Pick<HostRecords, 'list' | 'isAlive'>
  /** Runs are at work, so that there may be something to write. */
  isBusy: () => boolean
  /** Asks the host whether it is there; it is ended when it is not, for as long as `isWanted`. */
  check: (record: HostRecord, isWanted: () => boolean) => void
}

/**
 * Looks in a row, `everyMs` apart, that find the lock held before hosts are asked: a spool under load is locked at many a look. There are
 * more where nobody knows who holds it, since then hosts are asked that have nothing to do with it.
 */
const suspicionsNeeded = { known: 2, unknown: 6 }

/**
 * Watches the lock of the spool, which all run hosts share: a host that is stopped or hangs within a write would keep all others, and the
 * daemon, from writing for as long as it hangs. A host that holds the lock must answer; where the system does not
 * tell who holds it, all must.
 */
export class LockWatch {
  private readonly options: LockWatchOptions
  private suspicions = 0
  private cancel: (() => void) | null = null

  constructor(options: LockWatchOptions) {
    this.options = options
  }

  start(): void {
    const { world, everyMs } = this.options
    this.cancel = world.after(everyMs, () => {
      this.check()
      this.start()
    })
  }

  stop(): void {
    this.cancel?.()
    this.cancel = null
  }

  private check(): void {
    const { log, records, isBusy, check } = this.options
    this.suspicions = isBusy() && this.isLocked() ? this.suspicions + 1 : 0
    if (this.suspicions < suspicionsNeeded.known) return
    try {
      const holders = this.holders()
      const needed = holders === null ? suspicionsNeeded.unknown : suspicionsNeeded.known
      if (this.suspicions < needed) return
      const suspects = records
        .list()
        .filter((record) => records.isAlive(record) && (holders?.includes(record.pid) ?? true))
      if (this.suspicions === needed)
        log.warn({ holders, hosts: suspects.map(({ hostId }) => hostId) }, 'the spool is locked')
      for (const record of suspects)
        check(record, () => this.isLocked() && (this.holders()?.includes(record.pid) ?? true))
    } catch (error) {
      log.warn({ err: error }, 'who locks the spool could not be looked for')
    }
  }

  /** Returns who holds the lock; null: the system does not tell. A lock that nobody is named for is held by somebody it does not show. */
  private holders(): number[] | null {
    const holders = writeLockHolders(this.options.places.spool)
    return holders?.length === 0 ? null : holders
  }

  private isLocked(): boolean {
    try {
      return this.options.spool.isLocked()
    } catch {
      return false
    }
  }
}
