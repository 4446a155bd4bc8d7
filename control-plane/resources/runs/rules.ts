import type { RunId } from '../../../shared/lib/ids.ts'
import { hasRole, type Caller } from '../../http/callers.ts'
import { quoted, type Speaker } from '../../trust/quote.ts'
import type { AgentRow } from '../agents/store.ts'
import type { RunRow } from './store.ts'

// Decisions about runs.

/**
 * A workspace admin any run; the owner of the run's agent, or of an agent above it (`managers`); an agent its own runs.
 * `agent` is null when its row is gone: then only an admin may.
 */
export function mayCancelRun(
  run: Pick<RunRow, 'agentRef'>,
  caller: Caller,
  owners: { agent: Pick<AgentRow, 'ownerUuid'> | null; managers: readonly Pick<AgentRow, 'ownerUuid'>[] },
): boolean {
  if (caller.kind === 'agent') return run.agentRef === caller.agentRef
  if (hasRole(caller, 'admin')) return true
  return [owners.agent, ...owners.managers].some((agent) => agent?.ownerUuid === caller.personUuid)
}

export const isRetriable = (run: Pick<RunRow, 'status'>): boolean =>
  run.status === 'failed' || run.status === 'cancelled'

/** The prompt of a retry: that of the run it retries, and why. */
export function retryPrompt(
  prompt: string | null,
  retry: { runId: RunId; reason: string | undefined; by: Speaker },
): string | null {
  if (retry.reason === undefined || retry.reason.trim() === '') return prompt
  const { runId, by } = retry
  const reason = quoted({ as: 'request', what: `reason of the retry`, by, text: retry.reason.trim() })
  const why = `This run retries ${runId}.\n\n${reason}`
  return prompt === null ? why : `${prompt}\n\n${why}`
}

/** A gate whose end is known is waited for however long that takes, and this much longer. */
const pastOpeningMs = 3_600_000

/** Returns until when a gate may hold the run (ms UTC). `opensAt`: the gate's own end; null: it is not known. */
export const gatedUntil = (
  { createdAt }: { createdAt: number },
  { opensAt, gateMs }: { opensAt: number | null; gateMs: number },
): number => Math.max(createdAt + gateMs, (opensAt ?? 0) + pastOpeningMs)

/** Returns when a run ended of which its device says how long ago (ms): never before it started, never later than now. */
export function endedAtOf(
  { startedAt, createdAt }: { startedAt: number | null; createdAt: number },
  { heardAt, agoMs }: { heardAt: number; agoMs: number },
): number {
  return Math.min(heardAt, Math.max(startedAt ?? createdAt, heardAt - agoMs))
}
