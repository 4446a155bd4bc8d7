import type { RunTimings } from '../../../shared/api/runs.ts'
import { mostSpanMs, type DeviceSpans, type RunSpans } from '../../../shared/runs/spans.ts'
import type { RunRow } from './store.ts'

// The steps of a start and of an ending, on one line of time.

/** `endedAgoMs`: how long ago the device wrote its report when it sent it; `at`: when it is written down here. */
export function spansAt(
  { reported, ...spans }: DeviceSpans,
  { at, endedAgoMs = 0 }: { at: number; endedAgoMs: number | undefined },
): RunSpans {
  return {
    ...spans,
    ...(reported !== undefined && { reported: Math.min(reported + endedAgoMs, mostSpanMs) }),
    storedAt: at,
  }
}

type Timed = Pick<RunRow, 'createdAt' | 'offeredAt' | 'startedAt' | 'spans'>

/** The steps of the device count from its offer, as if the way there took no time: its clock is its own. */
export function timingsOf({ createdAt, offeredAt, startedAt, spans }: Timed): RunTimings {
  const here = (at: number | null | undefined) => (at == null ? null : Math.max(0, at - createdAt))
  const offeredMs = here(offeredAt)
  const there = (ms: number | undefined) =>
    offeredMs === null || ms === undefined ? null : Math.round(10 * (offeredMs + ms)) / 10
  return {
    offeredMs,
    claimedMs: here(startedAt),
    wallMs: there(spans?.wall),
    baseMs: there(spans?.base),
    launchedMs: there(spans?.launched),
    firstOutputMs: there(spans?.firstOutput),
    endedMs: there(spans?.ended),
    reportedMs: there(spans?.reported),
    storedMs: here(spans?.storedAt),
    hostCpuMs: spans?.hostCpu ?? null,
  }
}
