import type { DeviceRef, RunId } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { changeSetResult, type ChangeSetResult } from '../../../shared/device/change-set.ts'
import { overlongReason } from '../../../shared/device/event-line.ts'
import { int, json, nullableInt, text, time } from '../../db/columns.ts'
import { deviceRef, runId } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'
import { inserter } from '../../db/statement.ts'

/** Frames of events as the device sent them: one row each, the body unread. */
const frames = table('run_frames', {
  runId,
  fence: int,
  firstSeq: int,
  lastSeq: int,
  sha256: text,
  body: z.instanceof(Buffer),
  receivedAt: time,
})

export type Frame = RowOf<typeof frames>

const insert = inserter({
  table: 'run_frames',
  columns: {
    run_id: 'text',
    fence: 'integer',
    first_seq: 'bigint',
    last_seq: 'bigint',
    sha256: 'text',
    body: 'binary',
    received_at: 'bigint',
  },
})

export async function insertFrames(db: Db, given: readonly Frame[]): Promise<void> {
  const rows = given.map(({ runId, fence, firstSeq, lastSeq, sha256, body, receivedAt }) => [
    runId,
    fence,
    firstSeq,
    lastSeq,
    sha256,
    body,
    receivedAt,
  ])
  await insert(db, rows)
}

/** Frames are read together up to this many bytes, and one frame in any case: each may have 16 MB. */
const readBytes = 4 * 1024 * 1024

/**
 * The last of the frames near by that are within `readBytes` together; the length of a body is told without reading it. It is read first, so
 * that the frames are a range of the index, whatever values PostgreSQL plans for.
 */
const furthest = (near: string, order: 'asc' | 'desc'): string =>
  `(select ${order === 'asc' ? 'max' : 'min'}(first_seq) from (
     select first_seq, sum(bytes) over (order by first_seq ${order}) - bytes as bytes_before from (
       select first_seq, length(body) as bytes from run_frames where ${near} order by first_seq ${order} limit ?
     ) near
   ) sized where bytes_before < ${readBytes})`

/** Frames follow one another: none before the one that holds `afterSeq` is looked at. */
const following = `run_id = ? and last_seq > ? and first_seq >= coalesce(
  (select earlier.first_seq from run_frames earlier where earlier.run_id = ? and earlier.first_seq <= ?
   order by earlier.first_seq desc limit 1), 0)`

const forward = frames.query(`where ${following} and first_seq <= ${furthest(following, 'asc')} order by first_seq`)

/** Frames that hold events after `afterSeq`, in order, at most `limit`; fewer where they are large (see `mayBeMore`). */
export async function listFrames(db: Db, range: { runId: RunId; afterSeq: number; limit: number }): Promise<Frame[]> {
  const { runId, afterSeq, limit } = range
  const place = [runId, afterSeq, runId, afterSeq]
  return forward.list(db, [...place, ...place, limit])
}

/** Says whether frames may follow those that were read with this limit. */
export const mayBeMore = (read: readonly Frame[], limit: number): boolean =>
  read.length === limit || read.reduce((sum, { body }) => sum + body.length, 0) >= readBytes

const before = 'run_id = ? and first_seq < ?'
const backward = frames.query(`where ${before} and first_seq >= ${furthest(before, 'desc')} order by first_seq desc`)

/** Frames that hold events before `beforeSeq`, last first; as many as `listFrames`. */
export async function listFramesBackward(
  db: Db,
  range: { runId: RunId; beforeSeq: number; limit: number },
): Promise<Frame[]> {
  const place = [range.runId, range.beforeSeq]
  return backward.list(db, [...place, ...place, range.limit])
}

const latest = frames.query('where run_id = ? and first_seq < ? order by first_seq desc limit 1')

/** The frame that holds event `seq`, or null. */
export async function findFrame(db: Db, runId: RunId, seq: number): Promise<Frame | null> {
  const [frame] = await latest.list(db, [runId, seq + 1])
  return frame !== undefined && frame.lastSeq >= seq ? frame : null
}

/**
 * Says whether an event in the beginning of the log was too long and stands there as a declared gap. A device that lies about the hash of
 * a very long log must not have all of it read at once.
 */
export async function hasOverlong(db: Db, { runId, seq }: { runId: RunId; seq: number }): Promise<boolean> {
  let searched = 0
  for (let after = 0; after < seq && searched < mostSearchedBytes;) {
    const read = await listFrames(db, { runId, afterSeq: after, limit: 16 })
    if (read.some(({ body }) => body.includes(overlongMark))) return true
    searched += read.reduce((sum, { body }) => sum + body.length, 0)
    after = read.at(-1)?.lastSeq ?? seq
  }
  return false
}
const mostSearchedBytes = 64 * 1024 * 1024
const overlongMark = `"reason":"${overlongReason}"`

const evidence = table('run_evidence', {
  id: text,
  runId,
  fence: int,
  firstSeq: nullableInt,
  lastSeq: nullableInt,
  device: deviceRef,
  reason: text,
  body: z.instanceof(Buffer),
  receivedAt: time,
})
export type Evidence = RowOf<typeof evidence>

export async function insertEvidence(db: Db, row: Evidence): Promise<void> {
  await evidence.insert(db, row)
}

/** Measures what is kept of a run, or of all runs from one device. */
export async function measureEvidence(
  db: Db,
  of: { runId: RunId } | { device: DeviceRef },
): Promise<{ count: number; bytes: number }> {
  const measured: unknown = await db('run_evidence')
    .where('runId' in of ? { run_id: of.runId } : { device: of.device })
    .first({ count: db.raw('count(*)'), bytes: db.raw('coalesce(sum(length(body)), 0)') })
  return z.object({ count: z.coerce.number(), bytes: z.coerce.number() }).parse(measured)
}

const changeSets = table('run_change_sets', {
  runId,
  fence: int,
  result: json(changeSetResult),
  receivedAt: time,
})

export async function findChangeSet(db: Db, runId: RunId): Promise<RowOf<typeof changeSets> | null> {
  return changeSets.find(db, { runId })
}

/** Length of a run's stored change-set; 0: it has none. */
export async function measureChangeSet(db: Db, runId: RunId): Promise<number> {
  const measured: unknown = await db('run_change_sets')
    .where({ run_id: runId })
    .first({ length: db.raw('length(result)') })
  return z.object({ length: z.coerce.number() }).optional().parse(measured)?.length ?? 0
}

/** Stores a run's last change-set; sent again it replaces itself. */
export async function replaceChangeSet(
  db: Db,
  value: { runId: RunId; fence: number; result: ChangeSetResult; at: number },
): Promise<void> {
  await db('run_change_sets')
    .insert(changeSets.toColumns({ ...value, receivedAt: value.at }))
    .onConflict('run_id')
    .merge()
}
