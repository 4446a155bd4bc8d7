import { expect, test } from 'vitest'
import { specOf } from '../../../test/kit/harness-recordings.ts'
import { claudeDialogue } from './dialogue.ts'

const resetsAt = 1_900_000_000
const five = { windowMinutes: 300, models: null }
const seven = { windowMinutes: 10_080, models: null }

/** What a run tells of its account at its end, after these lines about limits. */
function usedAfter(...infos: object[]) {
  const dialogue = claudeDialogue(specOf({ harness: 'claude' }))
  const lines = [
    { type: 'system', subtype: 'init', session_id: 'a' },
    ...infos.map((info) => ({ type: 'rate_limit_event', session_id: 'a', rate_limit_info: info })),
    { type: 'result', subtype: 'success', session_id: 'a', result: 'Done.' },
  ]
  dialogue.open()
  for (const line of lines) dialogue.push(Buffer.from(`${JSON.stringify(line)}\n`))
  return dialogue.outcome({ exitCode: 0, signal: null, stoppedFor: null }).limitsUsed
}

test('each window of the account is told as claude told it last', () => {
  const first = { status: 'allowed', rateLimitType: 'five_hour', utilization: 0.4, resetsAt }
  const last = {
    status: 'allowed_warning',
    resetsAt,
    unifiedWindows: {
      five_hour: { utilization: 0.629, resetsAt, status: 'allowed' },
      seven_day: { utilization: 1.02, resetsAt: resetsAt + 86_400 },
      seven_day_overage_included: { utilization: 0.1, resetsAt },
    },
  }
  expect(usedAfter(first)).toEqual([{ ...five, usedPercent: 40, resetsAt: resetsAt * 1_000 }])
  expect(usedAfter(first, last)).toEqual([
    { ...five, usedPercent: 62, resetsAt: resetsAt * 1_000 },
    { ...seven, usedPercent: 102, resetsAt: (resetsAt + 86_400) * 1_000 },
  ])
  expect(usedAfter({ ...first, rateLimitType: 'seven_day_opus' })).toMatchObject([{ ...seven, models: 'opus' }])
})

test('where claude tells of no part that is used, or of one that cannot be, nothing is told', () => {
  const info = { status: 'allowed', rateLimitType: 'five_hour', resetsAt }
  const odd = [-1, 1e9, 'much', null].map((utilization) => ({ ...info, utilization }))
  const names = ['overage', '__proto__', 'constructor'].map((rateLimitType) => ({
    ...info,
    rateLimitType,
    utilization: 0.5,
  }))
  for (const told of [info, ...odd, ...names, { ...info, utilization: 0.5, resetsAt: 1e12 }])
    expect(usedAfter(told)).toBeUndefined()
  expect(usedAfter({ ...info, unifiedWindows: 'all' }, { ...info, unifiedWindows: { five_hour: 7 } })).toBeUndefined()
})
