import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeServedHome, type ServedHome } from './served-home.ts'

// `svc costs` and `svc run cost`: what runs cost, for people.

let home: ServedHome
beforeEach(() => {
  home = makeServedHome()
})
afterEach(() => home.close())

const spent = { inputTokens: 1200, outputTokens: 30, cacheReadTokens: 0, cacheWriteTokens: 0, durationMs: 3_900_000 }
const answer = {
  by: 'agent',
  since: '2026-03-07T00:00:00.000Z',
  until: '2026-03-14T00:00:00.000Z',
  total: { runs: 5, runsWithoutCost: 2, costUsd: '12.3456', ...spent },
  data: [
    { id: 'agt_1', name: '@builder', runs: 3, runsWithoutCost: 0, costUsd: '12.3456', ...spent },
    { id: 'agt_2', name: '@tester', runs: 2, runsWithoutCost: 2, costUsd: null, ...spent },
  ],
  leftOut: 7,
}
const asked = (name: string) => home.api.received.at(-1)!.query.get(name)

test('a length of time is one before now, and any other time goes as it is', async () => {
  const env = await home.inRun(() => ({ body: answer }))
  const before = Date.now()
  const { status, stdout } = await home.svc(['costs', '--by', 'day', '--since', '2w'], { env })
  expect([status, JSON.parse(stdout)]).toEqual([0, answer])
  expect(asked('by')).toBe('day')
  const since = Date.parse(asked('since') ?? '')
  expect(since).toBeGreaterThanOrEqual(before - 14 * 86_400_000)
  expect(since).toBeLessThanOrEqual(Date.now() - 14 * 86_400_000)
  await home.svc(['costs', '--since', '2026-03-01', '--until', '12h'], { env })
  expect(asked('since')).toBe('2026-03-01')
  expect(Date.parse(asked('until') ?? '')).toBeLessThan(Date.now() - 11 * 3_600_000)
  await home.svc(['costs'], { env })
  expect(asked('since')).toBeNull()
})

test('people see the sum of all, and that what is not known is not free', async () => {
  const env = await home.inRun(() => ({ body: answer }))
  const { stdout, stderr } = await home.svc(['costs', '-o', 'tsv'], { env })
  expect(stdout.split('\n').map((line) => line.split('\t').slice(0, 6))).toEqual([
    ['@builder', '12.3456', '3', '0', '3900s', '1200'],
    ['@tester', '', '2', '2', '3900s', '1200'],
    [''],
  ])
  expect(stderr).toBe(
    'svc: 5 runs since 2026-03-07 00:00 UTC; $12.35 in all; what 2 of them cost is not known; 7 more with less are not shown.\n',
  )
  const nothing = { ...answer, total: { ...answer.total, costUsd: null }, data: [], leftOut: 0 }
  const none = await home.svc(['costs', '-o', 'tsv'], { env: await home.inRun(() => ({ body: nothing })) })
  expect(none.stderr).toBe('svc: 5 runs since 2026-03-07 00:00 UTC; of none is known what it cost.\n')
})

test('of one run it says so, too', async () => {
  const runId = 'run_3nB7cW1yHsD5jK9q'
  const env = await home.inRun(() => ({ body: { runId, costUsd: null, model: null, ...spent, isFinal: false } }))
  const { stdout } = await home.svc(['run', 'cost', 'current', '-o', 'table'], { env })
  expect(home.api.received.at(-1)!.path).toBe(`/api/v1/runs/${runId}/cost`)
  expect(stdout.split('\n')).toEqual(expect.arrayContaining(['cost\tnot known', 'state\tthe run still works']))
})
