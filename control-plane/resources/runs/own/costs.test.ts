import { idFrom } from '../../../../shared/lib/ids.ts'
import { expect, test } from 'vitest'
import type { CostGrouping } from '../../../../shared/api/costs.ts'
import type { CostRow } from './cost-store.ts'
import { CostTally } from './costs.ts'

const at = Date.parse('2026-03-14T23:30:00Z')
const run = (more: Partial<CostRow> = {}): CostRow => ({
  id: idFrom('run_0000000000000001'),
  agentRef: idFrom('agt_a'),
  taskId: null,
  taskKey: null,
  taskTitle: null,
  projectUuid: null,
  costUsd: '0.1',
  usage: { inputTokens: 10, outputTokens: 1 },
  createdAt: at,
  startedAt: at,
  endedAt: at + 2_000,
  ...more,
})
const tallied = (by: CostGrouping, rows: readonly CostRow[], timezone = 'UTC') => {
  const tally = new CostTally(by, { timezone, now: at + 60_000 })
  for (const row of rows) tally.add(row)
  return { total: tally.total, costs: tally.costs() }
}

test('money is added exactly, and what nobody knows is counted and not taken for nothing', () => {
  const { total } = tallied('agent', [
    run(),
    run({ costUsd: '0.2' }),
    run({ costUsd: null, usage: null, endedAt: null }),
  ])
  expect(total).toEqual({
    runs: 3,
    runsWithoutCost: 1,
    costUsd: '0.3',
    inputTokens: 20,
    outputTokens: 2,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    durationMs: 64_000,
  })
  expect(tallied('agent', [run({ costUsd: null })]).total).toMatchObject({ costUsd: null, runsWithoutCost: 1 })
  // A run that was free is known to be.
  expect(tallied('agent', [run({ costUsd: '0' })]).total).toMatchObject({ costUsd: '0', runsWithoutCost: 0 })
  expect(tallied('agent', []).total).toMatchObject({ runs: 0, costUsd: null })
  // More digits than numbers have.
  const rows = ['9007199254740993.000000001', '0.000000001'].map((costUsd) => run({ costUsd }))
  expect(tallied('agent', rows).total.costUsd).toBe('9007199254740993.000000002')
})

test('the dearest come first, those of which nothing is known last; a run that waits has taken no time', () => {
  const waiting = run({ agentRef: idFrom('agt_c'), costUsd: null, usage: null, startedAt: null, endedAt: null })
  const { costs } = tallied('agent', [waiting, run(), run({ agentRef: idFrom('agt_b'), costUsd: '7' })])
  expect(costs.map(({ id, costUsd, durationMs }) => [id, costUsd, durationMs])).toEqual([
    ['agt_b', '7', 2_000],
    ['agt_a', '0.1', 2_000],
    ['agt_c', null, 0],
  ])
})

test('runs without a task or a project are a group of their own', () => {
  const task = { taskId: idFrom<NonNullable<CostRow['taskId']>>('tsk_1'), taskKey: 'SVC-1', taskTitle: 'Log in' }
  const rows = [run({ ...task, costUsd: '1' }), run()]
  expect(tallied('task', rows).costs.map(({ id, name }) => [id, name])).toEqual([
    ['tsk_1', 'SVC-1 Log in'],
    [null, 'no task'],
  ])
  expect(tallied('project', rows).costs).toMatchObject([{ id: null, name: 'no project', runs: 2 }])
})

test('a day is one of the zone, newest first', () => {
  const rows = [run(), run({ createdAt: at - 86_400_000 })]
  const daysIn = (zone: string) =>
    tallied('day', rows, zone).costs.map(({ id, name }) => (id === name ? id : [id, name]))
  expect(daysIn('UTC')).toEqual(['2026-03-14', '2026-03-13'])
  expect(daysIn('Europe/Berlin')).toEqual(['2026-03-15', '2026-03-14'])
  expect(daysIn('America/New_York')).toEqual(['2026-03-14', '2026-03-13'])
})
