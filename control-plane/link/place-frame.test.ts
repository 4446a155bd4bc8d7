import { idFrom, type DeviceRef } from '../../shared/lib/ids.ts'
import { describe, expect, it } from 'vitest'
import { placeFrame } from './place-frame.ts'

const run = {
  fence: 2,
  leaseState: 'claimed' as const,
  device: idFrom<DeviceRef>('dvc_a'),
  endedAt: null,
  eventSeq: 10,
}
const frame = (firstSeq: number, lastSeq: number, fence = 2) => ({ fence, firstSeq, lastSeq })

describe('the place of a frame of events', () => {
  it.each([
    ['next', frame(11, 15), { kind: 'store', from: 11 }],
    ['overlapping', frame(8, 15), { kind: 'store', from: 11 }],
    ['known', frame(3, 10), { kind: 'duplicate' }],
    ['beyond', frame(12, 15), { kind: 'gap' }],
    ['with an old fence', frame(11, 15, 1), { kind: 'refused', reason: 'stale_fence' }],
    ['with a fence not given yet', frame(11, 15, 3), { kind: 'refused', reason: 'stale_fence' }],
  ])('%s', (_name, given, verdict) => {
    expect(placeFrame(run, given, idFrom('dvc_a'))).toEqual(verdict)
  })

  it('refuses frames from another device, for an unknown run, or before the claim', () => {
    expect(placeFrame(run, frame(11, 12), idFrom('dvc_b'))).toEqual({ kind: 'refused', reason: 'stale_fence' })
    expect(placeFrame(null, frame(1, 2), idFrom('dvc_a'))).toEqual({ kind: 'refused', reason: 'run_unknown' })
    const offered = { ...run, leaseState: 'offered' as const }
    expect(placeFrame(offered, frame(11, 12), idFrom('dvc_a'))).toEqual({ kind: 'refused', reason: 'stale_fence' })
  })

  it('adds nothing to an ended run, but acknowledges stored events again', () => {
    const ended = { ...run, leaseState: 'none' as const, endedAt: 5 }
    expect(placeFrame(ended, frame(9, 10), idFrom('dvc_a'))).toEqual({ kind: 'duplicate' })
    expect(placeFrame(ended, frame(9, 11), idFrom('dvc_a'))).toEqual({ kind: 'refused', reason: 'run_ended' })
  })
})
