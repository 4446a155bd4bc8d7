import type { RunId } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { exitReasonNames } from '../../../shared/runs/exit-reasons.ts'
import { nullableText, text, time } from '../../db/columns.ts'
import { runId, workspaceUuid } from '../../db/id-columns.ts'
import { lockRows } from '../../db/dialect.ts'
import type { Db } from '../../db/open.ts'
import { query } from '../../db/statement.ts'
import { table, type RowOf } from '../../db/table.ts'
import { placeInLine } from './live-store.ts'
import { runs, type RunRow } from './store.ts'

/**
 * Runs that were cancelled together and are too many for one transaction. The row holds from the moment it is committed: a
 * run that it names and that waits is offered to no device and takes in no other wake, until its turn comes to be ended.
 */
const cancellations = table('run_cancellations', {
  id: text,
  workspaceId: workspaceUuid,
  /** The kind of root that the runs have: `subjectId` is the workspace, the agent (`agt_`) or the person (UUID) at their root. */
  subject: z.enum(['workspace', 'agent', 'person']),
  subjectId: text,
  /** `waiting`: those that nothing executed when it was asked for; `waiting_for_cloud`: those of the cloud among them. */
  extent: z.enum(['waiting', 'waiting_for_cloud', 'live']),
  exitReason: z.enum(exitReasonNames),
  reason: nullableText,
  /** Place in the line, and id, of the last run that was seen to. */
  seenAt: time,
  seenId: text,
  createdAt: time,
})
export type RunCancellation = RowOf<typeof cancellations>

/** The condition on the tables `c` and `runs` that the cancellation means the run. */
const means = `c.workspace_id = runs.workspace_id and runs.created_at <= c.created_at
  and (c.extent = 'live' or runs.status = 'queued' or runs.started_at > c.created_at)
  and (c.extent <> 'waiting_for_cloud' or runs.environment_type = 'cloud')
  and c.subject_id = case c.subject when 'workspace' then runs.workspace_id when 'agent' then runs.agent_id else runs.caused_by_user_id end`

/** The condition on `runs` that a row is not about to be cancelled. */
export const notCancelled = `not exists (select 1 from run_cancellations c where ${means})`

const toCancel = runs.query(
  `where ended_at is null and workspace_id = ? and (${placeInLine}, id) > (?, ?)
   and exists (select 1 from run_cancellations c where c.id = ? and ${means})
   order by ${placeInLine}, id limit ?`,
)

/** The next live runs that a stored cancellation means, in the order in which they wait. */
export async function listToCancel(db: Db, of: RunCancellation, limit: number): Promise<RunRow[]> {
  return toCancel.list(db, [of.workspaceId, of.seenAt, of.seenId, of.id, limit])
}

export async function insertCancellation(db: Db, cancellation: RunCancellation): Promise<void> {
  await cancellations.insert(db, cancellation)
}

/** Finds and locks it until the transaction ends; null when it is done, or somebody else has it. */
export async function claimCancellation(db: Db, id: string): Promise<RunCancellation | null> {
  return cancellations.first(lockRows(cancellations.from(db).where({ id }), true))
}

/** Notes the last run that was seen to. */
export async function recordSeen(db: Db, id: string, last: RunRow): Promise<void> {
  await cancellations.update(db, { id }, { seenAt: last.inLineSince ?? last.createdAt, seenId: last.id })
}

export async function removeCancellation(db: Db, id: string): Promise<void> {
  await db('run_cancellations').where({ id }).delete()
}

/** Lists what is left of all of them, oldest first. */
export async function listCancellations(db: Db, limit: number): Promise<RunCancellation[]> {
  return cancellations.list(cancellations.from(db).orderBy(['created_at', 'id']).limit(limit))
}

const one = query(`select id from runs where id = ? and not (${notCancelled})`, z.object({ id: runId }))

/** Returns whether a run that waits is about to be cancelled. */
export const isToBeCancelled = async (db: Db, runId: RunId): Promise<boolean> => (await one.first(db, [runId])) !== null
