import type { Db } from '../../../db/open.ts'
import { endCall, listCalls, recordChecks, type CheckRow } from '../call-store.ts'
import type { OpenChecks } from '../checks-store.ts'
import { publishChange } from '../notify.ts'
import { checksStateOf } from '../rules.ts'

/** Notes the checks as they are; when all are done, or the deadline has come, the wait is over. */
export async function noteChecks(
  db: Db,
  wait: OpenChecks,
  { checks, at }: { checks: readonly CheckRow[]; at: number },
): Promise<void> {
  const { workflowRunId, workspaceId, deadlineAt } = wait
  await recordChecks(db, wait, checks)
  const state = checksStateOf(checks) ?? (at >= deadlineAt ? 'timed_out' : null)
  if (state === null) return
  const result = JSON.stringify({ state, checks })
  if (await endCall(db, wait, { at, isValue: true, result }))
    await publishChange(db, { id: workflowRunId, workspaceId }, at)
}

/** The deadline has come: what was read last is what the program gets. */
export async function endWait(db: Db, wait: OpenChecks, at: number): Promise<void> {
  const checks = await findChecks(db, wait)
  if (checks !== null) await noteChecks(db, wait, { checks, at })
}

async function findChecks(db: Db, { workflowRunId, seq }: OpenChecks): Promise<readonly CheckRow[] | null> {
  const call = (await listCalls(db, workflowRunId)).find((each) => each.seq === seq)
  return call === undefined || call.endedAt !== null ? null : (call.checks ?? [])
}
