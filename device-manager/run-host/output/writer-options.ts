import type { EndReport } from '../../../shared/device/protocol.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { RunKey, Spool } from '../../spool/spool.ts'
import type { HostLog } from '../../log/host-log.ts'

export interface WriterOptions {
  world: World
  key: RunKey
  /** The spool, open already for the first row to be quick. */
  spool: Spool
  openSpool(): Spool
  log: HostLog
  /** Rows up to `lastSeq` are on disk. */
  onSpooled(lastSeq: number): void
  /** The spool lost rows of this run: nothing more can be written to it, and the run must end. */
  onBroken(message: string): void
  /** The file cannot be read as a spool. Only the daemon may set it aside; until then it is tried again. */
  onDamaged(message: string): void
  /** The file that was open is gone, or another one is at its path. Only the daemon makes one where there is none; until then it is tried again. */
  onGone(message: string): void
  limits: WriterLimits
}
export interface WriterLimits {
  /** Bytes of this run in the spool without an acknowledgement, above which output is dropped. */
  unsentBytes: number
  /** Bytes beyond `unsentBytes` that events which must be kept may take. */
  essentialBytes: number
  /** Bytes held in memory while the spool takes nothing. */
  heldBytes: number
  /** The tail of dropped output that is kept. */
  ringBytes: number
}
export const writerLimits: WriterLimits = {
  unsentBytes: 64 * 1024 * 1024,
  essentialBytes: 16 * 1024 * 1024,
  heldBytes: 4 * 1024 * 1024,
  ringBytes: 256 * 1024,
}

/** Makes a report of the totals of what the writer wrote. */
export type ReportOf = (
  totals: Pick<EndReport, 'eventCount' | 'logHash' | 'gapBytes' | 'usage' | 'sessionId' | 'approvals'> & {
    toolCalls: number
  },
) => EndReport
