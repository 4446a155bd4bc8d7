import { toTimestamp } from '../../../shared/api/ids.ts'
import type { Run } from '../../../shared/api/runs.ts'
import type { RunWhy } from '../../../shared/api/run-why.ts'
import type { Gate } from '../../run/places/place.ts'
import type { OpenHold } from '../approvals/open-holds.ts'
import { gatedUntil, isRetriable } from './rules.ts'
import type { RunRow } from './store.ts'

/** The times (ms) that a run waits at most. */
export interface RunWaits {
  /** Held by a gate, from its creation. */
  gateMs: number
  /** For a device to take it, when nothing holds it. */
  dispatchMs: number
  /** For a device that is silent while it works. */
  runnerLostMs: number
}

export interface WhyFacts {
  run: RunRow
  /** The run as clients see it now. */
  shown: Run
  /** The reason why it waits; null: nothing gates it. */
  gate: Gate | null
  /** Its sandbox is on its way. */
  isBeingMade: boolean
  /** What it waits for, where that is a person. */
  hold: OpenHold | null
  /** When its device was heard of last; null: it has none, or was never heard of. */
  deviceHeardAt: number | null
  waits: RunWaits
}

/** Says what holds a run, or how it ended, what happens next, and the command that helps. Pure. */
export function whyOf(facts: WhyFacts): RunAnswer {
  const { run, hold } = facts
  // A run that asks is told to end, so that it waits for nobody while it lives.
  if (hold !== null) return whyAsked(hold)
  if (run.endedAt !== null) return ended(facts, run.endedAt)
  if (run.cancelRequestedAt !== null) return stopping(facts, run.cancelRequestedAt)
  if (run.startedAt !== null) return working(facts, run.startedAt)
  return run.leaseState === 'offered' ? offered(facts) : waiting(facts)
}

/** Says which person's answer is waited for. */
export function whyAsked({ kind, id, label, since }: OpenHold): RunAnswer {
  const command = kind === 'approval' ? `svc approval approve ${id}` : `svc question answer ${id} "..."`
  return {
    state: 'asks',
    reason: kind,
    because: `It waits for a person: ${label}`,
    since: toTimestamp(since),
    next: 'Its agent goes on when somebody has answered.',
    nextAt: null,
    command,
  }
}

export type RunAnswer = Omit<RunWhy, 'object' | 'run'>

function waiting({ run, shown, gate, isBeingMade, waits: { gateMs, dispatchMs } }: WhyFacts): RunAnswer {
  const base = { state: 'waits', since: toTimestamp(run.createdAt) } as const
  if (isBeingMade)
    return {
      ...base,
      reason: null,
      because: 'Its sandbox is being made.',
      next: 'It starts when its sandbox is there.',
      nextAt: null,
      command: `svc run watch ${run.id}`,
    }
  if (gate === null) {
    const until = run.ungatedSince === null ? null : run.ungatedSince + dispatchMs
    return {
      ...base,
      reason: null,
      because: 'Nothing holds it: it is about to be offered.',
      next: 'It starts in a moment. Where nothing takes it, it fails as `dispatch_timeout`.',
      nextAt: until === null ? null : toTimestamp(until),
      command: `svc run watch ${run.id}`,
    }
  }
  return {
    ...base,
    reason: gate.reason,
    because: shown.gateDescription ?? 'Something holds it.',
    next: 'It starts by itself when that is over. Where that takes too long, it fails as `gate_timeout`.',
    nextAt: toTimestamp(gatedUntil(run, { opensAt: gate.opensAt ?? null, gateMs })),
    command: mends(gate, shown),
  }
}

/** The one command with which to begin. Limits of providers pass by themselves. */
function mends({ reason }: Gate, { id, task, agent }: Run): string | null {
  switch (reason) {
    case 'no_device':
      return 'svc device connect'
    case 'capacity':
      return 'svc run list --status running'
    case 'task_locked':
      return `svc run list --status running --status queued --task ${task?.id ?? 'TASK'}`
    case 'no_ready_route':
    case 'pinned_route_not_ready':
    case 'governance_refused':
      return agent === null ? `svc run cancel ${id}` : `svc agent doctor ${agent.handle}`
    case 'rate_limit':
    case 'provider_overloaded':
      return null
  }
}

const offered = ({ run }: WhyFacts): RunAnswer => ({
  state: 'waits',
  reason: null,
  because: 'It was offered, and is not taken yet.',
  since: toTimestamp(run.offeredAt ?? run.createdAt),
  next: 'It starts when the offer is taken. One that is not taken in time is made anew.',
  nextAt: run.offerExpiresAt === null ? null : toTimestamp(run.offerExpiresAt),
  command: `svc run watch ${run.id}`,
})

function working({ run, shown: { environment }, deviceHeardAt, waits }: WhyFacts, startedAt: number): RunAnswer {
  if (environment?.deviceLiveness === 'disconnected' && deviceHeardAt !== null)
    return {
      state: 'works',
      reason: 'device_away',
      because: `The device ${environment.deviceName ?? ''} is away. The run goes on there, and is reported when the device is back.`,
      since: toTimestamp(deviceHeardAt),
      next: 'Where the device stays away, the run fails as `runner_lost`.',
      nextAt: toTimestamp(deviceHeardAt + waits.runnerLostMs),
      command: 'svc device status',
    }
  return {
    state: 'works',
    reason: null,
    because: 'It works.',
    since: toTimestamp(startedAt),
    next: 'It ends by itself.',
    nextAt: null,
    command: `svc run watch ${run.id}`,
  }
}

const stopping = ({ run }: WhyFacts, since: number): RunAnswer => ({
  state: 'works',
  reason: run.cancelExitReason,
  because: 'It was told to end.',
  since: toTimestamp(since),
  next: 'It ends when its device reports the end, or after some minutes without a report.',
  nextAt: null,
  command: `svc run watch ${run.id}`,
})

function ended({ run }: WhyFacts, endedAt: number): RunAnswer {
  const base = { state: 'ended', reason: run.exitReason, since: toTimestamp(endedAt), nextAt: null } as const
  const because = run.errorMessage ?? sentences[run.status] ?? 'It has ended.'
  if (run.successorRunId !== null)
    return { ...base, because, next: 'Another run goes on with its work.', command: `svc why ${run.successorRunId}` }
  if (isRetriable(run))
    return { ...base, because, next: 'Nothing, until somebody wakes its agent.', command: `svc run retry ${run.id}` }
  return { ...base, because, next: 'Nothing: it is done.', command: `svc run read ${run.id}` }
}

const sentences: Readonly<Record<string, string>> = {
  succeeded: 'It has succeeded.',
  cancelled: 'It was cancelled.',
  failed: 'It has failed.',
}
