import { expect, it } from 'vitest'
import { spansAt, timingsOf } from './timings.ts'

const waiting = { createdAt: 1_000, offeredAt: null, startedAt: null, spans: null }
const nothing = Object.fromEntries(Object.keys(timingsOf(waiting)).map((name) => [name, null]))

it('tells of a run that waits that nothing has happened', () => {
  expect(timingsOf(waiting)).toEqual(nothing)
})

it('tells of a live run when it was offered and claimed', () => {
  const live = { ...waiting, offeredAt: 1_500, startedAt: 1_504 }
  expect(timingsOf(live)).toEqual({ ...nothing, offeredMs: 500, claimedMs: 504 })
})

it('lays the steps of the device behind the offer, and adds the time for which its report lay there', () => {
  const spans = spansAt(
    { wall: 1.5, launched: 9.2, firstOutput: 11, ended: 30, reported: 33, hostCpu: 55 },
    { at: 9_000, endedAgoMs: 7_000 },
  )
  const timings = timingsOf({ ...waiting, offeredAt: 1_500, startedAt: 1_504, spans })
  expect(timings).toEqual({
    offeredMs: 500,
    claimedMs: 504,
    wallMs: 501.5,
    baseMs: null,
    launchedMs: 509.2,
    firstOutputMs: 511,
    endedMs: 530,
    reportedMs: 7_533,
    storedMs: 8_000,
    hostCpuMs: 55,
  })
})

it('tells nothing of a device whose offer is not known', () => {
  const spans = spansAt({ launched: 9 }, { at: 2_000, endedAgoMs: undefined })
  expect(timingsOf({ ...waiting, spans })).toEqual({ ...nothing, storedMs: 1_000 })
})
