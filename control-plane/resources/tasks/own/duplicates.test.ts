import { expect, test } from 'vitest'
import { alikeBy, comparedWith, sortedTitleWords } from './duplicates.ts'
import { cpuMsOf } from '../../../../test/kit/cpu-time.ts'

const same = (one: string, other: string, descriptions: [string | null, string | null] = [null, null]) => {
  const [a, b] = [
    { title: one, description: descriptions[0] },
    { title: other, description: descriptions[1] },
  ]
  const answer = comparedWith(a)(b)
  expect(comparedWith(b)(a)).toBe(answer)
  // A task about the same work must not be left out before its description is read.
  if (answer) expect(alikeBy(sortedTitleWords(one))(sortedTitleWords(other))).toBe(true)
  return answer
}

test('case, spaces, punctuation and accents make no other title', () => {
  expect(same('Fix the login bug', '  fix the   LOGIN bug!! ')).toBe(true)
  expect(same('Café menu', 'cafe-menu')).toBe(true)
  expect(same('!!!', '!!!')).toBe(true)
  expect(same('测试登录', '测试登录。')).toBe(true)
  expect(same('!!!', '???')).toBe(false)
})

test('the same words in another order or form are the same work', () => {
  expect(same('Fix crash on the login page', 'Login page: fix crashes')).toBe(true)
  expect(same('Fix the white page', 'Fixing white pages')).toBe(true)
  expect(same('Release the boxes', 'Releasing a box')).toBe(true)
  expect(same('Stop the planned jobs', 'Stopping plan job')).toBe(true)
  expect(same('Add test for parser', 'Add tests for the parser')).toBe(true)
  expect(same('Improve documentation of releases', 'Improve documentaton of releases')).toBe(true)
})

test('numbers, letters and opposites tell tasks apart', () => {
  for (const [one, other] of [
    ['Step 1', 'Step 2'],
    ['Task A', 'Task B'],
    ['Load 1', 'Load 11'],
    ['Upgrade to v2', 'Upgrade to v3'],
    ['Upload the files', 'Unload the files'],
    ['Import users', 'Export users'],
    ['Subtask alpha', 'Subtask beta'],
    ['Fix login', 'Fix login and signup'],
    ['Symmetric keys', 'Asymmetric keys'],
    ['Parent', 'Child'],
  ] as const)
    expect([one, other, same(one, other)]).toEqual([one, other, false])
})

test('descriptions decide where titles do not', () => {
  const crash = 'Opening the settings page on a phone with a long name in the header crashes the whole app at once'
  const other = 'The invoices of last year must be exported as one archive for the accountant before the end of May'
  expect(same('App crashes on settings', 'Settings page crashes', [crash, `${crash}!`])).toBe(true)
  expect(same('App crashes on settings', 'Settings page crashes', [crash, other])).toBe(false)
  expect(same('App crashes on settings', 'Settings page crashes')).toBe(false)
  expect(same('Clean up the build', 'Build clean up', [crash, other])).toBe(false)
  expect(same('Step 1 of crash', 'Step 2 of crash', [crash, crash])).toBe(false)
})

test('the longest titles are compared with thousands of others in a moment', () => {
  // A single character of these becomes several words.
  const long = sortedTitleWords('\uFDFA'.repeat(500))
  const other = sortedTitleWords('\uFDFB'.repeat(500))
  const spent = cpuMsOf(() => {
    const isAlike = alikeBy(long)
    for (let count = 0; count < 2_000; count++) isAlike(other)
  })
  // Comparing every word with every other took 25 seconds.
  expect(spent).toBeLessThan(5_000)
})
