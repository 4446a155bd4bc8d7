import type { BlobId, RunId, WorkspaceUuid } from '../../shared/lib/ids.ts'
import { z } from 'zod'
import { flag, int, text, time } from '../db/columns.ts'
import { blobId, runId, workspaceUuid } from '../db/id-columns.ts'
import type { Db } from '../db/open.ts'
import { command, query } from '../db/statement.ts'

// What is old enough to go. Rows are looked at in pages by an index, oldest first, and each says whether it may go: one that must stay
// holds up none behind it.

/** The last row of the page before. */
export interface Place {
  at: number
  id: string
}

export const beginning: Place = { at: -1, id: '' }

/** True of a task on which nobody works any more, and that has not changed since. */
const isClosed = `(tasks.status in ('done', 'cancelled') or tasks.archived_at is not null) and tasks.updated_at < ?`

/** Looked for by each row: for `not exists` in what is selected PostgreSQL may read all of the other table first. */
const none = (rows: string) => `(select 1 from ${rows} limit 1) is null`
const asksNobody = (run: string) =>
  `${none(`approvals where approvals.run_id = ${run}.id and approvals.status = 'open'`)}
   and ${none(`questions where questions.run_id = ${run}.id and questions.status = 'open'`)}`

/**
 * Runs that may go, by the time before which they ended (three times): nobody works on their task or waits for them, nobody goes on with
 * them, and their sandbox and its volume are gone. The last run of an agent in a conversation has its session.
 */
const isOver = `ended_at < ?
  and coalesce((select case when ${isClosed} then 1 else 0 end from tasks where tasks.id = runs.task_id), 1) = 1
  and (conversation_id is null or task_id is not null or not ${none(`runs later
    where later.conversation_id = runs.conversation_id and later.agent_id = runs.agent_id
      and later.created_at > runs.created_at`)})
  and ${none('workflow_runs where workflow_runs.id = runs.workflow_run_id and completed_at is null')}
  and ${asksNobody('runs')}
  and ${none(`runs child where child.parent_run_id = runs.id
    and (child.ended_at is null or child.ended_at >= ? or not (${asksNobody('child')}))`)}
  and ${none(`wakes where wakes.state = 'waiting' and wakes.continues_run_id = runs.id`)}
  and ${none(`sandboxes where sandboxes.run_id = runs.id
    and (sandboxes.removed_at is null or sandboxes.leaves_volume = 1)`)}`
const thrice = (before: number) => [before, before, before]

const oldRun = z.object({ id: runId, at: time, isOver: flag })
export type OldRun = z.infer<typeof oldRun>

const oldRuns = query(
  `select id, created_at as "at", case when ${isOver} then 1 else 0 end as "isOver" from runs
   where workspace_id = ? and created_at < ? and (created_at, id) > (?, ?) order by created_at, id limit ?`,
  oldRun,
)

interface OldPage {
  before: number
  after: Place
  limit: number
}

/** Lists runs of a workspace that were created before the time, oldest first. */
export async function listOldRuns(db: Db, workspaceId: WorkspaceUuid, page: OldPage): Promise<OldRun[]> {
  const { before, after, limit } = page
  return oldRuns.list(db, [...thrice(before), workspaceId, before, after.at, after.id, limit])
}

const stillOver = query(`select id from runs where id in ? and ${isOver}`, z.object({ id: runId }))

/** Those of the runs that may go now. */
export async function listRunsStillOver(db: Db, ids: readonly RunId[], before: number): Promise<RunId[]> {
  return (await stillOver.list(db, [ids, ...thrice(before)])).map(({ id }) => id)
}

const ofRuns = ['run_details', 'run_change_sets', 'run_network', 'sandboxes'].map((table) =>
  command(`delete from ${table} where run_id = ?`),
)

/** Removes what is stored of the runs beside their rows and events. */
export async function removeRunParts(db: Db, ids: readonly RunId[]): Promise<void> {
  for (const id of ids) for (const remove of ofRuns) await remove(db, [id])
}

const oldEntry = z.object({ id: text, seq: int, at: time, isOver: flag })
export type OldEntry = z.infer<typeof oldEntry>

const oldEntries = query(
  `select a.id, a.seq, a.created_at as "at", case when ${isClosed} then 1 else 0 end as "isOver"
   from task_activity a join tasks on tasks.id = a.task_id
   where a.created_at < ? and (a.created_at, a.seq) > (?, ?) order by a.created_at, a.seq limit ?`,
  oldEntry,
)

/** Lists entries of the history of tasks that were made before the time, oldest first; one may go when its task is closed. */
export async function listOldHistory(
  db: Db,
  { before, after, limit }: { before: number; after: { at: number; seq: number }; limit: number },
): Promise<OldEntry[]> {
  return oldEntries.list(db, [before, before, after.at, after.seq, limit])
}

const removeEntries = command(
  `delete from task_activity where seq in ? and exists (select 1 from tasks where tasks.id = task_activity.task_id and ${isClosed})`,
)

/** Removes the entries whose tasks are closed still. Returns their number. */
export const removeHistory = (db: Db, seqs: readonly number[], before: number): Promise<number> =>
  removeEntries(db, [seqs, before])

/**
 * Versions that were replaced before the time, unless the file was put to something while they were current: whoever did so meant that
 * one. A file that is deleted goes as a whole.
 */
const isReplaced = `v.replaced_at < ? and v.replaced_at is not null and v.blob_id is not null and v.number < files.revision_count
  and files.deleted_at is null and ${none(`file_relations where file_relations.file_id = v.file_id
    and file_relations.created_at >= v.created_at and file_relations.created_at < v.replaced_at`)}`

const oldVersion = z.object({ id: text, at: time, blobId, workspaceId: workspaceUuid, sizeBytes: int, isOver: flag })
export type OldVersion = z.infer<typeof oldVersion>

const oldVersions = query(
  `select v.id, v.replaced_at as "at", v.blob_id as "blobId", files.workspace_id as "workspaceId", v.size_bytes as "sizeBytes",
     case when ${isReplaced} then 1 else 0 end as "isOver"
   from file_revisions v join files on files.id = v.file_id
   where v.replaced_at is not null and v.blob_id is not null and v.replaced_at < ? and (v.replaced_at, v.id) > (?, ?)
   order by v.replaced_at, v.id limit ?`,
  oldVersion,
)

/** Lists versions of files that were replaced before the time, longest replaced first. */
export async function listOldVersions(db: Db, { before, after, limit }: OldPage): Promise<OldVersion[]> {
  return oldVersions.list(db, [before, before, after.at, after.id, limit])
}

const stillReplaced = query(
  `select v.id, v.blob_id as "blobId" from file_revisions v join files on files.id = v.file_id
   where v.id in ? and ${isReplaced}`,
  z.object({ id: text, blobId }),
)
const forget = command('update file_revisions set blob_id = null where id in ?')

/** Takes the bytes from those of the versions that may go now; they stay in the list of their file. Returns the blobs, to release. */
export async function forgetVersions(db: Db, ids: readonly string[], before: number): Promise<BlobId[]> {
  const found = await stillReplaced.list(db, [ids, before])
  const gone = found.map(({ id }) => id)
  if (gone.length > 0) await forget(db, [gone])
  return found.map(({ blobId: blob }) => blob)
}

const counted = z.object({ workspaceId: text, rows: int, bytes: int })
export type DueCount = z.infer<typeof counted>

const counting = (sql: string) => query(sql, counted, { isPrepared: false })
const dueRuns = counting(
  `select workspace_id as "workspaceId", count(*) as "rows", coalesce(sum(event_bytes), 0) as "bytes" from runs
   where created_at < ? and ${isOver} group by workspace_id`,
)
const dueHistory = counting(
  `select tasks.workspace_id as "workspaceId", count(*) as "rows", 0 as "bytes"
   from task_activity a join tasks on tasks.id = a.task_id where a.created_at < ? and ${isClosed} group by tasks.workspace_id`,
)
const dueVersions = counting(
  `select files.workspace_id as "workspaceId", count(*) as "rows", coalesce(sum(v.size_bytes), 0) as "bytes"
   from file_revisions v join files on files.id = v.file_id where ${isReplaced} group by files.workspace_id`,
)

/** Counts what may go now of each kind, by workspace; an operator asks, so each reads all that is old. */
export const countDueRuns = (db: Db, before: number): Promise<DueCount[]> =>
  dueRuns.list(db, [before, ...thrice(before)])
export const countDueHistory = (db: Db, before: number): Promise<DueCount[]> => dueHistory.list(db, [before, before])
export const countDueVersions = (db: Db, before: number): Promise<DueCount[]> => dueVersions.list(db, [before])
