import { idFrom, type DeviceRef, type RunId } from '../../shared/lib/ids.ts'
import { describe, expect, it } from 'vitest'
import type { RunRow } from '../resources/runs/store.ts'
import { reconcile } from './reconcile.ts'

const device = idFrom<DeviceRef>('dvc_0123456789abcdef')
const row = (changes: Partial<RunRow>) =>
  ({
    id: 'run_1',
    fence: 1,
    device,
    leaseState: 'claimed',
    endedAt: null,
    eventSeq: 7,
    cancelRequestedAt: null,
    ...changes,
  }) as RunRow
const known = (state: 'accepted' | 'live' | 'ended', fence = 1) => ({
  runId: idFrom<RunId>('run_1'),
  fence,
  state,
  lastSeq: 9,
})

function settle(row: RunRow | null, mine: ReturnType<typeof known> | null, held = row ? [row] : []) {
  return reconcile({
    device,
    known: mine ? [mine] : [],
    rows: new Map(row ? [[idFrom<RunId>('run_1'), row]] : []),
    held: held.filter((run) => run.endedAt === null && run.leaseState !== 'none'),
  })
}

describe('a device that connects', () => {
  it('continues after the last stored event', () => {
    const result = settle(row({}), known('live'))
    expect(result.verdicts).toEqual([{ runId: 'run_1', fence: 1, verdict: 'go_on', ackSeq: 7 }])
    expect([result.claim, result.start, result.lost, result.withdraw]).toEqual([[], [], [], []])
  })

  it('is told to start a run again that it only accepted, whether the claim was stored or not', () => {
    expect(settle(row({}), known('accepted')).start).toHaveLength(1)
    const offered = settle(row({ leaseState: 'offered' }), known('accepted'))
    expect([offered.claim.length, offered.start.length]).toEqual([1, 1])
  })

  it('gives up a run that has another fence, belongs to another device, or has ended', () => {
    for (const other of [row({ fence: 2 }), row({ device: idFrom<DeviceRef>('dvc_other') }), row({ endedAt: 1 }), null])
      expect(settle(other, known('live'), []).verdicts[0]?.verdict).toBe('give_up')
  })

  it('forgets a run whose ending is stored', () => {
    expect(settle(row({ endedAt: 1, leaseState: 'none' }), known('ended')).verdicts[0]?.verdict).toBe('closed')
  })

  it('loses a claimed run it does not know, and gets an offer anew', () => {
    expect(settle(row({}), null).lost).toHaveLength(1)
    expect(settle(row({ leaseState: 'offered' }), null).withdraw).toHaveLength(1)
  })

  it('does not lose a run because it names an older lease of it', () => {
    const result = settle(row({ fence: 2, leaseState: 'offered' }), known('accepted', 1))
    expect(result.verdicts[0]?.verdict).toBe('give_up')
    expect(result.withdraw).toHaveLength(1)
  })

  it('is told of a cancellation it missed, unless the run has ended on it', () => {
    expect(settle(row({ cancelRequestedAt: 3 }), known('live')).cancel).toHaveLength(1)
    expect(settle(row({ cancelRequestedAt: 3 }), known('ended')).cancel).toHaveLength(0)
  })
})
