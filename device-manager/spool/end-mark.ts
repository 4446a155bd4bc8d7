import { z } from 'zod'
import { changeSetResult } from '../../shared/device/change-set.ts'
import { endReport, type EndReport } from '../../shared/device/protocol.ts'
import type { SinceBoot } from '../process/boot-clock.ts'
import { bootId } from '../process/identity.ts'
import type { RunEnding } from './rows.ts'

/**
 * When an ending was written, kept with its report: by a clock that all processes of one boot share, that nobody sets and that
 * counts a sleep.
 */
const endMark = z.object({ bootId: z.string().max(200), sinceBootMs: z.number() })

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

export const withMark = (report: EndReport, sinceBoot: SinceBoot): z.infer<typeof markedReport> => ({
  ...report,
  endMark: { bootId: bootId(), sinceBootMs: sinceBoot() },
})

/** null: it was written by an earlier release, or before the machine started again. */
export function agoMs({ report }: EndingRow, sinceBoot: SinceBoot): number | null {
  const { endMark: mark } = z.object({ endMark: endMark.optional() }).parse(JSON.parse(report))
  if (mark === undefined || mark.bootId === 'unknown' || mark.bootId !== bootId()) return null
  const ms = Math.round(sinceBoot() - mark.sinceBootMs)
  return ms < 0 ? null : ms
}
