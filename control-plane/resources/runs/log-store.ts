import { z } from 'zod'
import { changeSetResult, type ChangeSetResult } from '../../../shared/device/change-set.ts'
import type { RunUsage } from '../../../shared/runs/events.ts'
import { int, json, text, time, toJson } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { inserter } from '../../db/statement.ts'

/** Frames of events as the device sent them: one row each, the body unread. */
export interface Frame {
  runId: string
  fence: number
  firstSeq: number
  lastSeq: number
  sha256: string
  body: Buffer
  receivedAt: number
}

const row = z
  .object({
    run_id: text,
    fence: int,
    first_seq: int,
    last_seq: int,
    sha256: text,
    body: z.instanceof(Buffer),
    received_at: time,
  })
  .transform((r): Frame => ({
    runId: r.run_id,
    fence: r.fence,
    firstSeq: r.first_seq,
    lastSeq: r.last_seq,
    sha256: r.sha256,
    body: r.body,
    receivedAt: r.received_at,
  }))

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

export async function insertFrames(db: Db, frames: readonly Frame[]): Promise<void> {
  const rows = frames.map(({ runId, fence, firstSeq, lastSeq, sha256, body, receivedAt }) => [
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

/** Frames that hold events after `afterSeq`, in order, at most `limit`. */
export async function listFrames(db: Db, range: { runId: string; afterSeq: number; limit: number }): Promise<Frame[]> {
  const rows: unknown[] = await db('run_frames')
    .where({ run_id: range.runId })
    .where('last_seq', '>', range.afterSeq)
    .orderBy('first_seq')
    .limit(range.limit)
  return rows.map((value) => row.parse(value))
}

/** Frames that hold events before `beforeSeq`, last first. */
export async function listFramesBackward(
  db: Db,
  range: { runId: string; beforeSeq: number; limit: number },
): Promise<Frame[]> {
  const rows: unknown[] = await db('run_frames')
    .where({ run_id: range.runId })
    .where('first_seq', '<', range.beforeSeq)
    .orderBy('first_seq', 'desc')
    .limit(range.limit)
  return rows.map((value) => row.parse(value))
}

/** The frame that holds event `seq`, or null. */
export async function findFrame(db: Db, runId: string, seq: number): Promise<Frame | null> {
  const found: unknown = await db('run_frames')
    .where({ run_id: runId })
    .where('first_seq', '<=', seq)
    .where('last_seq', '>=', seq)
    .first()
  return found === undefined ? null : row.parse(found)
}

/** Moves the run's stored sequence forward for its current lease. False when the fence is old or another writer was first. */
export async function advanceLog(
  db: Db,
  step: { runId: string; fence: number; fromSeq: number; toSeq: number; bytes: number },
): Promise<boolean> {
  const changed = await db('runs')
    .where({ id: step.runId, fence: step.fence, event_seq: step.fromSeq, lease_state: 'claimed' })
    .whereNull('ended_at')
    .update({ event_seq: step.toSeq, event_bytes: db.raw('event_bytes + ?', [step.bytes]) })
  return changed === 1
}

/** What a live run's events said of its session and its usage so far. */
export async function recordProgress(
  db: Db,
  runId: string,
  progress: { usage: RunUsage | undefined; sessionId: string | undefined },
): Promise<void> {
  const { usage, sessionId } = progress
  if (!usage && !sessionId) return
  await db('runs')
    .where({ id: runId })
    .update({
      ...(usage ? { usage: toJson(usage), cost_usd: usage.costUsd ?? null } : {}),
      ...(sessionId ? { session_id: sessionId } : {}),
    })
}

export interface Evidence {
  id: string
  runId: string
  fence: number
  firstSeq: number | null
  lastSeq: number | null
  device: string
  reason: string
  body: Buffer
  receivedAt: number
}

export async function insertEvidence(db: Db, evidence: Evidence): Promise<void> {
  await db('run_evidence').insert({
    id: evidence.id,
    run_id: evidence.runId,
    fence: evidence.fence,
    first_seq: evidence.firstSeq,
    last_seq: evidence.lastSeq,
    device: evidence.device,
    reason: evidence.reason,
    body: evidence.body,
    received_at: evidence.receivedAt,
  })
}

export async function measureEvidence(db: Db, runId: string): Promise<{ count: number; bytes: number }> {
  const measured: unknown = await db('run_evidence')
    .where({ run_id: runId })
    .first({ count: db.raw('count(*)'), bytes: db.raw('coalesce(sum(length(body)), 0)') })
  return z.object({ count: z.coerce.number(), bytes: z.coerce.number() }).parse(measured)
}

const changeSetRow = z
  .object({ run_id: text, fence: int, result: json(changeSetResult), received_at: time })
  .transform((r) => ({ runId: r.run_id, fence: r.fence, result: r.result, receivedAt: r.received_at }))

export async function findChangeSet(db: Db, runId: string): Promise<z.infer<typeof changeSetRow> | null> {
  const found: unknown = await db('run_change_sets').where({ run_id: runId }).first()
  return found === undefined ? null : changeSetRow.parse(found)
}

/** Stores a run's last change-set; sent again it replaces itself. */
export async function replaceChangeSet(
  db: Db,
  value: { runId: string; fence: number; result: ChangeSetResult; at: number },
): Promise<void> {
  await db('run_change_sets')
    .insert({ run_id: value.runId, fence: value.fence, result: toJson(value.result), received_at: value.at })
    .onConflict('run_id')
    .merge()
}
