import { expect, test } from 'vitest'
import { dueInstant, nextInstant, scheduleFlaw } from './schedule.ts'

const at = (text: string) => Date.parse(text)
const text = (instant: number | null) => (instant === null ? null : new Date(instant).toISOString().slice(0, 16))

/** The next `count` instants after `from`, in UTC. */
function series(cron: string, timezone: string, { from, count }: { from: string; count: number }) {
  const found: (string | null)[] = []
  let after = at(from)
  for (let i = 0; i < count; i++) {
    const next = nextInstant({ cron, timezone }, after)
    found.push(text(next))
    if (next === null) break
    after = next
  }
  return found
}

test('a time of day follows its time zone through a clock change', () => {
  const daily = (timezone: string, from: string) => series('0 9 * * *', timezone, { from, count: 3 })
  expect(daily('Europe/Berlin', '2026-03-27T12:00Z')).toEqual([
    '2026-03-28T08:00',
    '2026-03-29T07:00',
    '2026-03-30T07:00',
  ])
  expect(daily('Europe/Berlin', '2026-10-23T12:00Z')).toEqual([
    '2026-10-24T07:00',
    '2026-10-25T08:00',
    '2026-10-26T08:00',
  ])
  expect(daily('Asia/Kolkata', '2026-10-23T12:00Z')).toEqual([
    '2026-10-24T03:30',
    '2026-10-25T03:30',
    '2026-10-26T03:30',
  ])
})

test('a time of day that a clock change skips fires once, right after the change', () => {
  const spring = { from: '2026-03-07T12:00Z', count: 3 }
  const moved = ['2026-03-08T07:00', '2026-03-09T06:30', '2026-03-10T06:30']
  expect(series('30 2 * * *', 'America/New_York', spring)).toEqual(moved)
  // Both times of the list fall together, and one instant is one fire.
  expect(series('0,30 2 * * *', 'America/New_York', spring)).toEqual([moved[0], '2026-03-09T06:00', '2026-03-09T06:30'])
  expect(series('15 2-4/2,14 * * *', 'America/New_York', { ...spring, from: '2026-03-08T05:00Z' })).toEqual([
    '2026-03-08T07:00',
    '2026-03-08T08:15',
    '2026-03-08T18:15',
  ])
  // Midnight is left out in Chile.
  expect(series('0 0 * * *', 'America/Santiago', { from: '2026-09-05T12:00Z', count: 2 })).toEqual([
    '2026-09-06T04:00',
    '2026-09-07T03:00',
  ])
})

test('a time of day that a clock change repeats fires only the first time', () => {
  const autumn = { from: '2026-10-31T12:00Z', count: 3 }
  expect(series('30 1 * * *', 'America/New_York', autumn)).toEqual([
    '2026-11-01T05:30',
    '2026-11-02T06:30',
    '2026-11-03T06:30',
  ])
  expect(series('30 2 * * *', 'Europe/Berlin', { from: '2026-10-24T12:00Z', count: 2 })).toEqual([
    '2026-10-25T00:30',
    '2026-10-26T01:30',
  ])
  expect(series('0,30 2 * * *', 'Europe/Berlin', { from: '2026-10-24T12:00Z', count: 3 })).toEqual([
    '2026-10-25T00:00',
    '2026-10-25T00:30',
    '2026-10-26T01:00',
  ])
})

test('a schedule of every few minutes keeps its interval through both clock changes', () => {
  const steps = (cron: string, zone: string, from: string) =>
    series(cron, zone, { from, count: 12 }).map((each, i, all) =>
      i === 0 ? null : at(`${each}Z`) - at(`${all[i - 1]}Z`),
    )
  for (const from of ['2026-03-08T05:07Z', '2026-11-01T04:07Z']) {
    expect(new Set(steps('*/15 * * * *', 'America/New_York', from).slice(1))).toEqual(new Set([900_000]))
    expect(new Set(steps('0 * * * *', 'America/New_York', from).slice(1))).toEqual(new Set([3_600_000]))
  }
})

test('on Lord Howe Island clock changes skip and repeat half an hour', () => {
  const zone = 'Australia/Lord_Howe'
  expect(series('15 2 * * *', zone, { from: '2026-10-02T16:00Z', count: 2 })).toEqual([
    '2026-10-03T15:30',
    '2026-10-04T15:15',
  ])
  expect(series('45 1 * * *', zone, { from: '2026-04-03T16:00Z', count: 2 })).toEqual([
    '2026-04-04T14:45',
    '2026-04-05T15:15',
  ])
  expect(series('*/15 * * * *', zone, { from: '2026-04-04T14:20Z', count: 4 })).toEqual([
    '2026-04-04T14:30',
    '2026-04-04T14:45',
    '2026-04-04T15:00',
    '2026-04-04T15:15',
  ])
})

test('leap days, weekdays and names of days are understood', () => {
  expect(series('0 0 29 2 *', 'UTC', { from: '2026-03-01T00:00Z', count: 2 })).toEqual([
    '2028-02-29T00:00',
    '2032-02-29T00:00',
  ])
  expect(series('0 0 29 2 *', 'UTC', { from: '2097-01-01T00:00Z', count: 1 })).toEqual(['2104-02-29T00:00'])
  expect(series('0 9 * * MON-FRI', 'UTC', { from: '2026-11-20T10:00Z', count: 1 })).toEqual(['2026-11-23T09:00'])
  // Day of month or day of week, when both are given.
  expect(series('0 12 13 * 5', 'UTC', { from: '2026-01-10T00:00Z', count: 2 })).toEqual([
    '2026-01-13T12:00',
    '2026-01-16T12:00',
  ])
})

test('the next instant lies after the moment asked, to the millisecond', () => {
  const schedule = { cron: '*/5 * * * *', timezone: 'UTC' }
  const instant = at('2026-01-01T00:05Z')
  expect(nextInstant(schedule, instant - 1)).toBe(instant)
  expect(nextInstant(schedule, instant)).toBe(instant + 300_000)
  expect(nextInstant(schedule, instant + 1)).toBe(instant + 300_000)
})

test('the last missed instant is due while it is less than an hour old', () => {
  const schedule = { cron: '*/10 * * * *', timezone: 'UTC' }
  const due = at('2026-01-01T00:10Z')
  const when = (now: string) => {
    const { instant, next } = dueInstant(schedule, { due, now: at(now) })
    return [text(instant), text(next)]
  }
  expect(when('2026-01-01T00:09Z')).toEqual([null, '2026-01-01T00:10'])
  expect(when('2026-01-01T00:10Z')).toEqual(['2026-01-01T00:10', '2026-01-01T00:20'])
  expect(when('2026-01-01T00:55Z')).toEqual(['2026-01-01T00:50', '2026-01-01T01:00'])
  expect(when('2026-02-01T00:55Z')).toEqual(['2026-02-01T00:50', '2026-02-01T01:00'])
  const daily = { cron: '0 3 * * *', timezone: 'UTC' }
  const night = at('2026-01-01T03:00Z')
  expect(dueInstant(daily, { due: night, now: night + 3_599_999 })).toEqual({
    instant: night,
    next: night + 86_400_000,
  })
  expect(dueInstant(daily, { due: night, now: night + 3_600_000 })).toEqual({ instant: null, next: night + 86_400_000 })
})

test('names the problem in an invalid schedule', () => {
  const flaw = (cron: string, timezone = 'UTC') => scheduleFlaw({ cron, timezone }, at('2026-01-01T00:00Z'))
  expect(flaw('0 9 * * 1-5', 'Europe/Berlin')).toBeNull()
  for (const timezone of ['Mars/Olympus', '+01:00', 'nonsense', ''])
    expect(flaw('0 9 * * *', timezone)).toMatchObject({ field: 'timezone' })
  for (const cron of ['60 * * * *', '* 24 * * *', '*/0 * * * *', 'a b c d e', '5-1 * * * *', '* * * * * *', '@daily'])
    expect(flaw(cron)).toMatchObject({ field: 'cron' })
  expect(flaw('0 0 30 2 *')).toEqual({ field: 'cron', message: 'never comes' })
})
