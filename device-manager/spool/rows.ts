import type { RunId } from '../../shared/lib/ids.ts'
import { crc32 } from 'node:zlib'
import type { ChangeSetResult } from '../../shared/device/change-set.ts'
import type { EndReport } from '../../shared/device/protocol.ts'
import type { AskedCall } from '../../shared/runs/asked-call.ts'
import type { RunUsage } from '../../shared/runs/events.ts'

/** One lease's events: a run that was given out again under a higher fence begins at seq 1 again. */
export interface RunKey {
  runId: RunId
  fence: number
}
/** `line` is one event as JSON with its newline. */
export interface SpoolRow {
  seq: number
  line: Uint8Array
}
/** Totals so far, kept beside the rows: with them the daemon finishes a run whose host died. */
export interface RunStats {
  gapBytes: number
  toolCalls: number
  usage: RunUsage | null
  sessionId: string | null
  /** Calls that a person is asked about, each once. */
  approvals: readonly AskedCall[]
}
export interface RunEnding {
  report: EndReport
  changeSet: ChangeSetResult | null
}
export interface RunSummary extends RunKey {
  lastSeq: number
  ackedSeq: number
  rows: number
  bytes: number
  ended: boolean
}
/** What is known of a run's rows without the spool: where it is lost, so much is lost of the run. */
export interface ExpectedRun extends RunKey {
  ackedSeq: number
  /** The last row that a loss takes: the event of an ending is written anew. */
  lastSeq: number
  /** Of the rows that were not acknowledged. */
  bytes: number
  /** False: the run may have any number of rows. */
  isExact: boolean
}
/** The events of one run that were kept and lost when a damaged spool was set aside. */
export interface SalvagedRun extends RunKey {
  ackedSeq: number
  /** Rows up to here are in the new spool or were acknowledged. */
  keptSeq: number
  /** The last row the damaged file knew of; more than `keptSeq` means that events were lost. */
  knownSeq: number
  hadEnding: boolean
}
export interface Salvage {
  asidePath: string
  reason: string
  runs: SalvagedRun[]
  /** False when not even the list of runs could be read: runs that are not in `runs` may have lost events. */
  runListRead: boolean
}

/** The highest seq one run can have in the spool's integer key. */
export const maxSeq = 0xffff_ffff

/** Tied to the seq, so that a row that landed at another place is noticed as well. */
export function rowCrc(seq: number, line: Uint8Array): number {
  return crc32(line, seq)
}
