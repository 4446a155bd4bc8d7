import { harnessFactsOf } from '../../shared/runs/harnesses.ts'
import type { EndReport } from '../../shared/device/protocol.ts'
import type { RunEventBody } from '../../shared/runs/events.ts'
import type { ExitReason } from '../../shared/runs/exit-reasons.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import type { UsedLimit } from '../../shared/device/used-limits.ts'
import type { TriedAct } from '../../shared/runs/wall-acts.ts'
import type { HarnessOutcome } from '../harness/adapter.ts'
import { isProvidersFault } from '../harness/parts/failure.ts'
import { advised } from './advice.ts'
import type { Assignment } from './preparation.ts'
import type { ReportOf } from './output/writer-options.ts'
import type { Timeline } from './timeline.ts'

export interface Reported {
  exitReason: ExitReason
  exitCode: number | null
  signal: string | null
  message: string | null
  /** The session with which a later run may go on; null, although events may name one: none may. */
  sessionId: string | null
  /** The session with which the run was to go on, and which is gone. */
  lostSessionId?: string | null
  forced: boolean
  /** See HarnessOutcome. */
  limitResetsAt?: number
  /** See HarnessOutcome. */
  limitsUsed?: readonly UsedLimit[]
  /** See HarnessOutcome. */
  providerFailed?: boolean
  /** A process of the run was ended since the sandbox had no memory left. */
  outOfMemory?: boolean
  /** Acts by which the run tried its wall; null: none were tried. */
  wall?: readonly TriedAct[] | null
}

const maxMessage = 4000

interface HowItEnded {
  exit: Pick<Reported, 'exitCode' | 'signal'>
  /** The outcome as the harness's own words say it. */
  outcome: HarnessOutcome
  /** The ending that the run was told to have; null: it ended by itself. */
  stop: { exitReason: ExitReason; message: string | null; outOfMemory?: boolean } | null
  /** The reason why the agent was let do nothing, although its harness says that it is done; null: it was let do something. */
  nothingAllowed: string | null
  /** The sentence about a process that ended for want of memory; null: none did. */
  exhausted: string | null
  spec: RunSpec
  forced: boolean
}

/** Returns what the device tells of the end of a run. */
export function reportOn({ exit, outcome, stop, nothingAllowed, exhausted, spec, forced }: HowItEnded): Reported {
  const ended = stop ?? outcome
  const exitReason = nothingAllowed === null ? ended.exitReason : 'error'
  const ownWords = stop === null ? advised(outcome, outcome.message, harnessFactsOf(spec).ignores) : ended.message
  const isExhausted = stop === null && exitReason === 'error' && exhausted !== null
  return {
    ...exit,
    exitReason,
    message: nothingAllowed ?? (isExhausted ? [exhausted, ownWords].filter(Boolean).join(' ') : ownWords),
    sessionId: outcome.sessionId,
    lostSessionId: outcome.resumeRefused ? spec.resumeSessionId : null,
    forced,
    ...((isExhausted || stop?.outOfMemory === true) && { outOfMemory: true }),
    ...(ended.exitReason === 'rate_limited' &&
      outcome.limitResetsAt !== undefined && { limitResetsAt: outcome.limitResetsAt }),
    ...(outcome.limitsUsed !== undefined && { limitsUsed: outcome.limitsUsed }),
    ...(stop === null &&
      ended.exitReason === 'error' &&
      isProvidersFault(outcome.failure) && { providerFailed: true as const }),
  }
}

export function endedEvent({ exitReason, exitCode, signal, message, forced }: Reported): RunEventBody {
  const data = { exitReason, exitCode, signal, ...(message !== null && { message: message.slice(0, maxMessage) }) }
  return { kind: 'ended', data: forced ? { ...data, forced } : data }
}

/** The report of one run, once the writer knows what it has written. */
export function reportMaker(reported: Reported, { spec, harnessVersion }: Assignment, timeline: Timeline): ReportOf {
  return ({ toolCalls, sessionId: named, ...totals }) => {
    const { sessionId } = reported
    timeline.mark('reported')
    const lost = reported.lostSessionId ?? (sessionId === null ? named : null)
    return {
      ...totals,
      exitReason: reported.exitReason,
      exitCode: reported.exitCode,
      signal: reported.signal,
      message: reported.message?.slice(0, maxMessage) ?? null,
      // A command makes no tool calls that anyone could count.
      toolCallCount: harnessFactsOf(spec).callsTools ? toolCalls : null,
      sessionId: sessionId?.slice(0, 200) ?? null,
      ...(lost !== null && { lostSessionId: lost.slice(0, 200) }),
      harnessVersion: harnessVersion?.slice(0, 200) ?? null,
      forced: reported.forced,
      spans: timeline.spans(),
      ...(reported.limitResetsAt !== undefined && { limitResetsAt: reported.limitResetsAt }),
      ...(reported.limitsUsed !== undefined && { limitsUsed: [...reported.limitsUsed] }),
      ...(reported.providerFailed === true && { providerFailed: true }),
      ...(reported.outOfMemory === true && { outOfMemory: true }),
      ...(reported.wall != null && { wall: [...reported.wall] }),
    } satisfies EndReport
  }
}
