import { expect, test } from 'vitest'
import type { Comparison } from './reads.ts'
import { isSameChange, verdictOf, verdictsIn } from './verdict.ts'
import { cpuMsOf } from '../../test/kit/cpu-time.ts'

const review = (state: string, body = '', sha: string | null = 'a') => ({ state, body, sha, isOfTeam: true })

test('a review is a verdict by its state, or by a line of its text', () => {
  expect(verdictOf(review('APPROVED'))).toEqual({ sha: 'a', isApproval: true })
  expect(verdictOf(review('CHANGES_REQUESTED'))).toEqual({ sha: 'a', isApproval: false })
  for (const body of ['Verdict: approve', 'x\n**Verdict:** Approved.', '> ## verdict: approve', '_Verdict_: approve'])
    expect([body, verdictOf(review('COMMENTED', body))]).toEqual([body, { sha: 'a', isApproval: true }])
  expect(verdictOf(review('COMMENTED', '- Verdict: request changes'))).toEqual({ sha: 'a', isApproval: false })
  for (const body of ['', 'no verdict: yet', 'Verdict', 'verdict: ', 'Verdict\n: approve', 'My verdict: approve'])
    expect([body, verdictOf(review('COMMENTED', body))]).toEqual([body, null])
  // A dismissed or pending review is none, whatever it says, and one of no commit neither.
  for (const state of ['DISMISSED', 'PENDING']) expect(verdictOf(review(state, 'Verdict: approve'))).toBeNull()
  expect(verdictOf(review('APPROVED', '', null))).toBeNull()
  // Everybody may review a pull request of a public repository.
  for (const state of ['APPROVED', 'CHANGES_REQUESTED', 'COMMENTED'])
    expect(verdictOf({ ...review(state, 'Verdict: approve'), isOfTeam: false })).toBeNull()
  expect(verdictsIn([review('COMMENTED'), review('APPROVED'), review('CHANGES_REQUESTED')])).toHaveLength(2)
})

test('a long text without a verdict is read in linear time', () => {
  const spent = cpuMsOf(() => {
    for (const text of ['\n'.repeat(60_000), '*'.repeat(60_000), `${'> '.repeat(30_000)}verdict`])
      expect(verdictOf(review('COMMENTED', text))).toBeNull()
  })
  expect(spent).toBeLessThan(1_000)
})

const comparison = (...files: Partial<Comparison['files'][number]>[]): Comparison => ({
  status: 'ahead',
  files: files.map((file) => ({ filename: 'a', status: 'modified', ...file })),
})

test('changes with the same lines are equal, wherever the lines are', () => {
  const before = comparison({ sha: '1', patch: '@@ -1 +1 @@\n-a\n+b' })
  expect(isSameChange(before, comparison({ sha: '2', patch: '@@ -9 +9 @@ f()\n-a\n+b' }))).toBe(true)
  expect(isSameChange(before, comparison({ sha: '1' }))).toBe(true)
  expect(isSameChange(comparison(), comparison())).toBe(true)
})

test('changes differ when any file differs, or when they cannot be compared', () => {
  const before = comparison({ sha: '1', patch: '@@\n+b' })
  for (const after of [
    comparison({ sha: '2', patch: '@@\n+c' }),
    comparison({ sha: '2' }),
    comparison({ sha: '1', status: 'removed' }),
    comparison({ sha: '1', previous_filename: 'old' }),
    comparison({ sha: '1', filename: 'b' }),
    comparison({ sha: '1' }, { filename: 'b' }),
    comparison(),
  ])
    expect(isSameChange(before, after)).toBe(false)
  const many = comparison(...Array.from({ length: 300 }, (_, i) => ({ filename: `f${i}`, sha: '1' })))
  // GitHub may have left some out.
  expect(isSameChange(many, many)).toBe(false)
})
