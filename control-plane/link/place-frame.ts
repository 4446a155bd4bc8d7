import type { DeviceRef } from '../../shared/lib/ids.ts'
import type { EventsHeader } from '../../shared/device/protocol.ts'
import type { RunRow } from '../resources/runs/store.ts'

/**
 * The decision about a frame of events, from the run's row (pure). `from` is the first sequence number of the frame
 * that is not stored yet.
 */
export type FrameVerdict =
  | { kind: 'store'; from: number }
  /** The whole frame is stored already: compare, acknowledge, store nothing. */
  | { kind: 'duplicate' }
  /** The frame begins after the next number: acknowledge the stored events and wait. */
  | { kind: 'gap' }
  | { kind: 'refused'; reason: 'stale_fence' | 'run_ended' | 'run_unknown' }

export function placeFrame(
  run: Pick<RunRow, 'fence' | 'leaseState' | 'device' | 'endedAt' | 'eventSeq'> | null,
  frame: Pick<EventsHeader, 'fence' | 'firstSeq' | 'lastSeq'>,
  device: DeviceRef,
): FrameVerdict {
  if (!run) return { kind: 'refused', reason: 'run_unknown' }
  if (run.fence !== frame.fence || run.device !== device) return { kind: 'refused', reason: 'stale_fence' }
  if (run.endedAt !== null) {
    // Events stored before the ending are acknowledged again; nothing is added to an ended run.
    return frame.lastSeq <= run.eventSeq ? { kind: 'duplicate' } : { kind: 'refused', reason: 'run_ended' }
  }
  if (run.leaseState !== 'claimed') return { kind: 'refused', reason: 'stale_fence' }
  if (frame.lastSeq <= run.eventSeq) return { kind: 'duplicate' }
  if (frame.firstSeq > run.eventSeq + 1) return { kind: 'gap' }
  return { kind: 'store', from: Math.max(frame.firstSeq, run.eventSeq + 1) }
}
