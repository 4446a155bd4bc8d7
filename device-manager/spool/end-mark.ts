import { z } from 'zod'
import { changeSetResult } from '../../shared/device/change-set.ts'
import { endReport, type EndReport } from '../../shared/device/protocol.ts'
import type { World } from '../../shared/lib/world.ts'
import { bootId } from '../process/identity.ts'
import type { RunEnding } from './rows.ts'

/**
 * When an ending was written, kept with its report: by the monotonic clock, which all processes of one boot share and nobody
 * sets. It stands still while some systems sleep, so the time since then is at most told too short.
 */
const endMark = z.object({ bootId: z.string().max(200), monotonicMs: z.number() })

/** The report as the spool keeps it. */
export const markedReport = endReport.extend({ endMark: endMark.optional() })

/** A row of `endings`. */
export interface EndingRow {
  report: string
  change_set: string | null
}

export const endingOf = ({ report, change_set: changeSet }: EndingRow): RunEnding => ({
  report: endReport.parse(JSON.parse(report)),
  changeSet: changeSet === null ? null : changeSetResult.parse(JSON.parse(changeSet)),
})

type Clock = Pick<World, 'monotonic'>

export const withMark = (report: EndReport, { monotonic }: Clock): z.infer<typeof markedReport> => ({
  ...report,
  endMark: { bootId: bootId(), monotonicMs: monotonic() },
})

/** null: it was written by an earlier release, or before the machine started again. */
export function agoMs({ report }: EndingRow, { monotonic }: Clock): number | null {
  const { endMark: mark } = z.object({ endMark: endMark.optional() }).parse(JSON.parse(report))
  if (mark === undefined || mark.bootId === 'unknown' || mark.bootId !== bootId()) return null
  const ms = Math.round(monotonic() - mark.monotonicMs)
  return ms < 0 ? null : ms
}
