import type { RunId } from '../../shared/lib/ids.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { changeRun } from '../../control-plane/run/change-store.ts'
import type { RunEnding } from '../../control-plane/run/life.ts'

/**
 * Writes the ending of a run and nothing of what it does elsewhere: as its device reports it, where the fence is named, and else as
 * a cancel, which ends a run in any phase. Returns whether it ended.
 */
export async function endRun(
  db: Db,
  {
    runId,
    fence,
    at,
    endedAt = at,
    ...ending
  }: Omit<RunEnding, 'endedAt'> & { runId: RunId; fence: number | null; at: number; endedAt?: number },
): Promise<boolean> {
  const how = { ...ending, endedAt }
  return changeRun(
    db,
    runId,
    fence === null ? { type: 'cancelled', ...how } : { type: 'ended_by_device', fence, ...how },
  )
}
