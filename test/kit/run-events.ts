import { idFrom, type DeviceRef, type RunId } from '../../shared/lib/ids.ts'
import type { Made, RunEvent, RunEventType, RunLife } from '../../control-plane/run/life.ts'

// Events of a run at random, as replicas and devices send them who may believe what is not so any more.

export const givenRun: Made['as'] = {
  taskId: null,
  harness: 'claude',
  modelId: 'm',
  reasoningEffort: null,
  providerKeyId: null,
  fallbackHarness: 'codex',
  fallbackKeyId: idFrom('sec_1'),
  fallbackModel: 'f',
}
export const devices = [idFrom<DeviceRef>('dvc_a'), idFrom<DeviceRef>('dvc_b')] as const

/** Mulberry32: numbers from 0 up to 1, the same ones for the same seed. */
export function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const types: readonly RunEventType[] = [
  // The steps of a whole life are drawn more often, so that walks come to its end.
  ...(['made', 'made', 'made', 'made', 'offered', 'offered', 'offered', 'claimed', 'claimed', 'claimed'] as const),
  'offer_withdrawn',
  'fallback_taken',
  'harness_started',
  'gate_opened',
  'gate_closed',
  'cancel_asked',
  'events_stored',
  'progress_told',
  'ended_by_device',
  'missing_on_device',
  'device_removed',
  'ended_by_time',
  'waited_too_long',
  'declined',
  'cancelled',
  'sandbox_lost',
  'workspace_removed',
  'followed',
  'message_added',
  'session_forgotten',
  'removed',
]

/** The types of events that are sent for many runs at once. */
const together: readonly RunEventType[] = types.filter(
  (type) => !['made', 'offered', 'session_forgotten', 'removed'].includes(type),
)

/** Events of several runs at one moment: half of the time all of one type, as what comes together mostly is, and else of any. */
export function drawEvents(random: () => number, views: readonly RunLife[]): RunEvent[] {
  const type = random() < 0.5 ? together[Math.floor(random() * together.length)]! : null
  return views.map((view) => drawEvent(random, view, type ?? together[Math.floor(random() * together.length)]!))
}

/** An event as somebody sends it who believes the row to be so. */
export function drawEvent(random: () => number, view: RunLife | null, wanted: RunEventType | null = null): RunEvent {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!
  const type = wanted ?? (view === null && random() < 0.5 ? 'made' : pick(types))
  const at = Math.floor(random() * 1_000)
  // Sometimes a device answers to an offer of long ago, or answers what another one was asked.
  const fence = random() < 0.1 ? Math.floor(random() * 3) : (view?.fence ?? 0)
  const by = random() < 0.1 || view?.device == null ? pick(devices) : view.device
  const ended = {
    exitReason: pick(['completed', 'interrupted', 'runner_lost'] as const),
    errorMessage: null,
    endedAt: at,
  }
  switch (type) {
    case 'made':
      return { type, as: givenRun, offer: random() < 0.5 ? null : { device: by, at, expiresAt: at } }
    case 'offered':
      return { type, device: pick(devices), at, expiresAt: at }
    case 'fallback_taken':
      return { type, reasoningEffort: null }
    case 'offer_withdrawn':
      return { type, fence, ...(random() < 0.5 && { device: by }) }
    case 'claimed':
    case 'harness_started':
      return { type, fence, device: by, at }
    case 'gate_opened':
      return { type, at }
    case 'cancel_asked':
      return { type, exitReason: 'interrupted', reason: null, at }
    case 'events_stored': {
      const fromSeq = view?.eventSeq ?? 0
      return { type, fence, fromSeq, toSeq: fromSeq + 1, bytes: 10 }
    }
    case 'progress_told':
      return { type, usage: undefined, sessionId: pick(['s', 't']) }
    case 'ended_by_device':
      return { type, fence, ...ended, spans: { launched: 9.5, storedAt: at } }
    case 'missing_on_device':
      return { type, fence, ...ended }
    case 'followed':
      return { type, successorRunId: idFrom<RunId>('run_2') }
    case 'message_added':
      return { type, sentence: 'More.' }
    case 'session_forgotten':
      return { type, sessionId: pick(['s', 't']) }
    case 'gate_closed':
    case 'removed':
      return { type }
    default:
      return { type, ...ended }
  }
}
