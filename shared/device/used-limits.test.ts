import { expect, test } from 'vitest'
import { limitName, usedLimits, type UsedLimit } from './used-limits.ts'

const good: UsedLimit = { windowMinutes: 300, models: null, usedPercent: 62, resetsAt: 1_900_000_000_000 }

test('of what a device tells, each part that no limit can be is left out by itself', () => {
  const told = [
    good,
    { ...good, usedPercent: -1 },
    { ...good, usedPercent: 1e9 },
    { ...good, usedPercent: Number.NaN },
    { ...good, resetsAt: 253_402_300_800_000 },
    { ...good, windowMinutes: 1e9 },
    { ...good, models: 'a\u001b[31m' },
    { ...good, more: 'of a later device', models: 'opus' },
  ]
  expect(usedLimits.parse(told)).toEqual([good, { ...good, models: 'opus' }])
})

test('what is no list is none, and a list of a thousand is cut', () => {
  for (const told of [null, 7, 'x', { length: 2 }, [[]]]) expect(usedLimits.parse(told)).toEqual([])
  expect(usedLimits.parse(Array.from({ length: 1_000 }, () => good))).toHaveLength(8)
})

test('limits have the names that people know', () => {
  const named = (windowMinutes: number, models: string | null = null) => limitName({ windowMinutes, models })
  expect([named(300), named(10_080), named(10_080, 'opus'), named(90)]).toEqual([
    '5-hour',
    '7-day',
    '7-day opus',
    '90-minute',
  ])
})
