import { expect, it } from 'vitest'
import { specOf } from '../../test/kit/harness-recordings.ts'
import { Timeline } from './timeline.ts'
import { reportMaker, type Reported } from './end-report.ts'

const totals = { eventCount: 9, logHash: '', gapBytes: 0, usage: null, toolCalls: 0 }
const reported = { exitReason: 'completed', exitCode: 0, signal: null, message: null, forced: false } as const

function sessionsOf(of: Pick<Reported, 'sessionId' | 'lostSessionId'>, named: string | null) {
  const assignment = { spec: specOf(), harnessVersion: null } as Parameters<typeof reportMaker>[1]
  const report = reportMaker(
    { ...reported, ...of },
    assignment,
    new Timeline({ monotonic: () => 0 }),
  )({ ...totals, sessionId: named })
  return { sessionId: report.sessionId, lostSessionId: report.lostSessionId }
}

it.each([
  ['the session that the harness names', { sessionId: 'a' }, 'a', { sessionId: 'a' }],
  ['none', { sessionId: null }, null, { sessionId: null }],
  ['one that is gone', { sessionId: null, lostSessionId: 'a' }, null, { sessionId: null, lostSessionId: 'a' }],
  [
    'one that the harness named and does not give: it is full',
    { sessionId: null },
    'a',
    { sessionId: null, lostSessionId: 'a' },
  ],
])('tells of %s', (_, of, named, expected) => {
  expect(sessionsOf(of, named)).toEqual(expected)
})
