import { expect, test } from 'vitest'
import { idFrom, type WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { holds, WaitingCount, WaitingRuns, type Hold } from './waiting-runs.ts'

const [one, other] = [idFrom<WorkspaceUuid>('1'), idFrom<WorkspaceUuid>('2')]

function count(...runs: readonly [Hold, number][]): WaitingCount {
  const counted = new WaitingCount()
  for (const [hold, createdAt] of runs) counted.add(hold, createdAt)
  return counted
}
const told = (found: WaitingRuns) => [...found.total()].filter(([, { count }]) => count > 0)

test('the runs of all workspaces are counted together, with the first of each hold', () => {
  const found = new WaitingRuns()
  expect([...found.total()]).toEqual(holds.map((hold) => [hold, { count: 0, oldestAt: null }]))
  found.record(one, count(['capacity', 7], ['capacity', 5], ['none', 9]))
  found.record(other, count(['capacity', 3]))
  expect(told(found)).toEqual([
    ['capacity', { count: 3, oldestAt: 3 }],
    ['none', { count: 1, oldestAt: 9 }],
  ])
})

test('a round takes the place of the one before, and a workspace in which nothing waits is forgotten', () => {
  const found = new WaitingRuns()
  found.record(one, count(['capacity', 7]))
  found.record(other, count(['no_device', 3]))
  found.record(one, count(['none', 8]))
  found.keep([one])
  expect(told(found)).toEqual([['none', { count: 1, oldestAt: 8 }]])
  found.keep([])
  expect(told(found)).toEqual([])
})
