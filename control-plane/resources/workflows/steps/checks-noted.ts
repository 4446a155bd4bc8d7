import type { Db } from '../../../db/open.ts'
import { endCall, endCalls, listCalls, recordChecks, type CheckRow } from '../call-store.ts'
import type { OpenChecks } from '../checks-store.ts'
import { publishChange } from '../notify.ts'
import { checksStateOf } from '../rules.ts'

/**
 * Notes the checks of a branch for these waits on it. A wait is over when all checks are done, or when its deadline has come.
 */
export async function noteChecks(
  db: Db,
  waits: readonly OpenChecks[],
  { checks, at }: { checks: readonly CheckRow[]; at: number },
): Promise<void> {
  const state = checksStateOf(checks)
  for (const [workflowRunId, ofRun] of byRun(waits)) {
    await recordChecks(db, { workflowRunId, seqs: ofRun.map(({ seq }) => seq) }, checks)
    const over = ofRun.filter(({ deadlineAt }) => state !== null || at >= deadlineAt)
    if (over.length === 0) continue
    const end = { at, result: JSON.stringify({ state: state ?? 'timed_out', checks }) }
    if ((await endCalls(db, { workflowRunId, seqs: over.map(({ seq }) => seq) }, end)) > 0)
      await publishChange(db, { id: workflowRunId, workspaceId: over[0]!.workspaceId }, at)
  }
}

/** The deadline of these waits of one workflow run has come: what was read last is what the program gets. */
export async function endWaits(db: Db, waits: readonly OpenChecks[], at: number): Promise<void> {
  for (const [workflowRunId, ofRun] of byRun(waits)) {
    const calls = new Map((await listCalls(db, workflowRunId)).map((call) => [call.seq, call]))
    let hasEnded = false
    for (const wait of ofRun) {
      const checks = calls.get(wait.seq)?.checks ?? []
      const result = JSON.stringify({ state: checksStateOf(checks) ?? 'timed_out', checks })
      if (await endCall(db, wait, { at, isValue: true, result })) hasEnded = true
    }
    if (hasEnded) await publishChange(db, { id: workflowRunId, workspaceId: ofRun[0]!.workspaceId }, at)
  }
}

const byRun = (waits: readonly OpenChecks[]) => Map.groupBy(waits, ({ workflowRunId }) => workflowRunId)
