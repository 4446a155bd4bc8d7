import { expect, test } from 'vitest'
import { HostDemand } from './host-demand.ts'

const gib = 2 ** 30
const room = 100

function demandAfter(times: readonly number[], memory = 64 * gib): HostDemand {
  const demand = new HostDemand({ memory })
  for (const at of times) demand.note(at)
  return demand
}

test('one host stands by where no run came yet, also without room and on the smallest machine', () => {
  expect(demandAfter([]).wanted(0, { room })).toBe(1)
  expect(demandAfter([0, 0, 0]).wanted(0, { room: 0 })).toBe(1)
  expect(demandAfter([0, 0, 0], gib / 4).wanted(0, { room })).toBe(1)
})

test('as many stand by as came together, not as came one after another', () => {
  expect(demandAfter([0, 10, 20, 3_000]).wanted(3_000, { room })).toBe(4)
  expect(demandAfter([0, 3_001, 6_002, 9_003]).wanted(9_003, { room })).toBe(1)
  expect(demandAfter([0, 1_000, 3_500, 3_600, 3_700]).wanted(4_000, { room })).toBe(4)
})

test('no more stand by than there are places left, and than the memory bears', () => {
  const times = Array.from({ length: 30 }, () => 0)
  expect(demandAfter(times).wanted(0, { room: 5 })).toBe(5)
  expect(demandAfter(times).wanted(0, { room })).toBe(8)
  expect(demandAfter(times, 24 * gib).wanted(0, { room })).toBe(6)
  expect(demandAfter(times, 8 * gib).wanted(0, { room })).toBe(2)
})

test('a burst is forgotten two minutes later, run by run', () => {
  const demand = demandAfter([0, 1_000])
  expect(demand.wanted(119_999, { room })).toBe(2)
  expect(demand.changesIn(119_999)).toBe(1)
  expect(demand.wanted(120_000, { room })).toBe(1)
  expect(demand.changesIn(120_000)).toBe(1_000)
  expect(demand.changesIn(121_000)).toBeNull()
})
