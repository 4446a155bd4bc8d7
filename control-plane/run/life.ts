import type { DeviceRef, RunId, SecretId, TaskId } from '../../shared/lib/ids.ts'
import type { declineReasons } from '../../shared/device/protocol.ts'
import type { RunUsage } from '../../shared/runs/events.ts'
import type { EndedRunStatus, ExitReason } from '../../shared/runs/exit-reasons.ts'
import type { HarnessName } from '../../shared/runs/harnesses.ts'
import type { RunSpans } from '../../shared/runs/spans.ts'

// The words of the machine: what of a row is its life, and every event that changes it.

export type Phase = 'waiting' | 'offered' | 'running' | 'stopping' | 'ended'

/** The columns of a row of `runs` that change after it was made, and the task, by which a claim is told apart. */
export interface RunLife {
  status: 'queued' | 'running' | EndedRunStatus
  leaseState: 'none' | 'offered' | 'claimed'
  fence: number
  device: DeviceRef | null
  offeredAt: number | null
  offerExpiresAt: number | null
  ungatedSince: number | null
  taskId: TaskId | null
  harness: HarnessName
  modelId: string | null
  reasoningEffort: string | null
  providerKeyId: SecretId | null
  fallbackHarness: HarnessName | null
  fallbackKeyId: SecretId | null
  fallbackModel: string | null
  startedAt: number | null
  harnessStartedAt: number | null
  cancelExitReason: string | null
  cancelReason: string | null
  cancelRequestedAt: number | null
  eventSeq: number
  eventBytes: number
  gapBytes: number
  usage: RunUsage | null
  costUsd: string | null
  toolCallCount: number | null
  sessionId: string | null
  logVerified: boolean | null
  exitReason: string | null
  errorCode: string | null
  errorMessage: string | null
  limitResetsAt: number | null
  providerFailed: boolean | null
  harnessVersion: string | null
  spans: RunSpans | null
  endedAt: number | null
  successorRunId: RunId | null
}

export interface Offer {
  device: DeviceRef
  at: number
  expiresAt: number
}

/** Why an offer is taken back: its device said so, or one of ours. */
export type WithdrawalReason =
  | (typeof declineReasons)[number]
  | 'not_answered'
  | 'not_sent'
  | 'lost_by_device'
  | 'device_removed'
  | 'session_forgotten'

/** Endings that the control plane writes whoever holds the run. */
export type EndedByServer =
  | 'device_removed'
  | 'ended_by_time'
  | 'waited_too_long'
  | 'declined'
  | 'cancelled'
  | 'sandbox_lost'
  | 'workspace_removed'

/** A field that is left out leaves what the row has. */
export interface RunEnding {
  exitReason: ExitReason
  errorMessage: string | null
  endedAt: number
  usage?: RunUsage | null
  toolCallCount?: number | null
  sessionId?: string | null
  gapBytes?: number
  logVerified?: boolean | null
  limitResetsAt?: number | null
  providerFailed?: boolean
  harnessVersion?: string | null
  spans?: RunSpans
}

/** A wake made the run, and may have found a device that takes it at once. */
export interface Made {
  type: 'made'
  offer: Offer | null
  as: Pick<RunLife, GivenColumn>
}

type GivenColumn =
  | 'taskId'
  | 'harness'
  | 'modelId'
  | 'reasoningEffort'
  | 'providerKeyId'
  | 'fallbackHarness'
  | 'fallbackKeyId'
  | 'fallbackModel'

export type RunEvent =
  | Made
  | ({ type: 'offered' } & Offer)
  /** The run was offered to run on its fallback harness. */
  | { type: 'fallback_taken'; reasoningEffort: string | null }
  /**
   * The offer was declined, was not answered in time, or its device is gone. With `device`, only an offer to that device is withdrawn. `why`
   * is for whoever watches.
   */
  | { type: 'offer_withdrawn'; fence: number; device?: DeviceRef; why?: WithdrawalReason }
  /** `isLone`: only a run that works on no task. */
  | { type: 'claimed'; fence: number; device: DeviceRef; at: number; isLone?: boolean }
  | { type: 'harness_started'; fence: number; device: DeviceRef; at: number }
  /** A sweep found that nothing holds the run, or that something does again. */
  | { type: 'gate_opened'; at: number }
  | { type: 'gate_closed' }
  /** The run's device is within reach and is told to end it. */
  | { type: 'cancel_asked'; exitReason: ExitReason; reason: string | null; at: number }
  | { type: 'events_stored'; fence: number; fromSeq: number; toSeq: number; bytes: number }
  | { type: 'progress_told'; usage: RunUsage | undefined; sessionId: string | undefined }
  /** The device reports how it ended. */
  | ({ type: 'ended_by_device'; fence: number } & RunEnding)
  /** The device came back and does not know the run. */
  | ({ type: 'missing_on_device'; fence: number } & RunEnding)
  /**
   * The control plane ends the run. `device_removed`: its device is gone. `ended_by_time`: it took too long, its device was silent, or did not
   * end it as it was told. `waited_too_long`: it was never started. `declined`: admission refused the wake. `cancelled`: no device executes
   * it, or that device is out of reach. `sandbox_lost`: its sandbox is gone. `workspace_removed`: its workspace is.
   */
  | ({ type: EndedByServer } & RunEnding)
  /** A run that goes on with its work. */
  | { type: 'followed'; successorRunId: RunId }
  | { type: 'message_added'; sentence: string }
  /** The session is gone or full: no later run goes on with it. */
  | { type: 'session_forgotten'; sessionId: string }
  /** The run's row goes with its workspace. */
  | { type: 'removed' }
export type RunEventType = RunEvent['type']

/** A further act of the caller that changed the row, in the same transaction or after its commit. */
export type Effect =
  /** Looks for a device that may take the run. */
  | 'find_place'
  /** Tells the device that it is offered. */
  | 'push_offer'
  /** Applies the effects of a start on other resources, and sends the device what it needs to start. */
  | 'start'
  /** Has the replica that holds the link tell the device to end it, that its offer is void, or that it has ended. */
  | 'tell_device'
  /** Applies the effects of an ending on other resources, and gives the room to others. */
  | 'end'

export type RunRefusal =
  | 'unknown'
  | 'exists'
  | 'not_waiting'
  | 'not_offered'
  | 'not_queued'
  | 'not_running'
  | 'has_ended'
  | 'has_not_ended'
  | 'stale_fence'
  | 'other_device'
  | 'works_on_task'
  | 'has_no_fallback'
  | 'harness_has_started'
  | 'gate_is_known'
  | 'cancel_was_asked'
  | 'log_has_moved'
  | 'other_session'

export function phaseOf({
  endedAt,
  leaseState,
  cancelRequestedAt,
}: Pick<RunLife, 'endedAt' | 'leaseState' | 'cancelRequestedAt'>): Phase {
  if (endedAt !== null) return 'ended'
  if (leaseState === 'none') return 'waiting'
  if (leaseState === 'offered') return 'offered'
  return cancelRequestedAt === null ? 'running' : 'stopping'
}
