/** The ways in which a run can end, and the status of each. */
export const exitReasons = {
  completed: 'succeeded',
  approval_requested: 'succeeded',
  question_asked: 'succeeded',
  interrupted: 'cancelled',
  agent_paused: 'cancelled',
  company_paused: 'cancelled',
  cloud_disabled: 'cancelled',
  billing_locked: 'cancelled',
  duplicate_trigger: 'cancelled',
  timeout: 'failed',
  budget_exceeded: 'failed',
  no_progress: 'failed',
  gate_timeout: 'failed',
  dispatch_timeout: 'failed',
  dispatch_error: 'failed',
  harness_start_failed: 'failed',
  runner_lost: 'failed',
  sandbox_lost: 'failed',
  crashed: 'failed',
  rate_limited: 'failed',
  circuit_breaker: 'failed',
  error: 'failed',
  agent_deleted: 'failed',
  invalid_task: 'failed',
  zombie_pre_lease_backfill: 'failed',
  zombie_undispatched: 'failed',
  migration_backfill: 'failed',
} as const satisfies Record<string, 'succeeded' | 'failed' | 'cancelled'>

export type ExitReason = keyof typeof exitReasons
export const exitReasonNames = Object.keys(exitReasons) as [ExitReason, ...ExitReason[]]

export const runStatuses = ['queued', 'running', 'succeeded', 'failed', 'cancelled'] as const
export type EndedRunStatus = 'succeeded' | 'failed' | 'cancelled'

/** An unknown reason counts as `failed`. */
export function statusOfExitReason(reason: string): EndedRunStatus {
  return Object.hasOwn(exitReasons, reason) ? exitReasons[reason as ExitReason] : 'failed'
}
