import { z } from 'zod'
import { usageData, type RunUsage } from '../../../shared/runs/events.ts'
import { statusOfExitReason, type ExitReason } from '../../../shared/runs/exit-reasons.ts'
import { runStatuses } from '../../../shared/runs/exit-reasons.ts'
import { harnessNames } from '../../../shared/runs/spec.ts'
import {
  int,
  nullableInt,
  nullableJson,
  nullableText,
  nullableTime,
  text,
  time,
  toNullableJson,
} from '../../db/columns.ts'
import { lockRows } from '../../db/dialect.ts'
import type { Db } from '../../db/open.ts'
import { columnsOf, command, query } from '../../db/statement.ts'

/** A row of `runs`. `leaseState`: none, offered (to `device` until `offerExpiresAt`), claimed (by `device`). */
const row = z
  .object({
    id: text,
    workspace_id: text,
    agent_id: text,
    status: z.enum(runStatuses),
    trigger_source: text,
    requested_by: nullableText,
    caused_by_user_id: nullableText,
    harness: z.enum(harnessNames),
    environment_type: z.enum(['device', 'cloud']),
    folder_id: nullableText,
    task_id: nullableText,
    task_key: nullableText,
    task_title: nullableText,
    conversation_id: nullableText,
    parent_run_id: nullableText,
    successor_run_id: nullableText,
    fence: int,
    lease_state: z.enum(['none', 'offered', 'claimed']),
    device: nullableText,
    offer_expires_at: nullableTime,
    ungated_since: nullableTime,
    cancel_exit_reason: nullableText,
    cancel_reason: nullableText,
    cancel_requested_at: nullableTime,
    exit_reason: nullableText,
    error_code: nullableText,
    error_message: nullableText,
    model_id: nullableText,
    reasoning_effort: nullableText,
    permission_mode: nullableText,
    session_id: nullableText,
    usage: nullableJson(usageData),
    cost_usd: nullableText,
    tool_call_count: nullableInt,
    event_seq: int,
    event_bytes: int,
    gap_bytes: int,
    log_verified: nullableInt,
    harness_started_at: nullableTime,
    created_at: time,
    started_at: nullableTime,
    ended_at: nullableTime,
    version: int,
  })
  .transform((r) => ({
    id: r.id,
    workspaceId: r.workspace_id,
    agentId: r.agent_id,
    status: r.status,
    triggerSource: r.trigger_source,
    requestedBy: r.requested_by,
    /** UUID of the person at the root of its chain of wakes; null: not known. */
    causedByUserId: r.caused_by_user_id,
    harness: r.harness,
    environmentType: r.environment_type,
    folderId: r.folder_id,
    taskId: r.task_id,
    taskKey: r.task_key,
    taskTitle: r.task_title,
    conversationId: r.conversation_id,
    parentRunId: r.parent_run_id,
    successorRunId: r.successor_run_id,
    fence: r.fence,
    leaseState: r.lease_state,
    device: r.device,
    offerExpiresAt: r.offer_expires_at,
    ungatedSince: r.ungated_since,
    cancelExitReason: r.cancel_exit_reason,
    cancelReason: r.cancel_reason,
    cancelRequestedAt: r.cancel_requested_at,
    exitReason: r.exit_reason,
    errorCode: r.error_code,
    errorMessage: r.error_message,
    modelId: r.model_id,
    reasoningEffort: r.reasoning_effort,
    permissionMode: r.permission_mode,
    sessionId: r.session_id,
    usage: r.usage,
    costUsd: r.cost_usd,
    toolCallCount: r.tool_call_count,
    eventSeq: r.event_seq,
    eventBytes: r.event_bytes,
    gapBytes: r.gap_bytes,
    logVerified: r.log_verified === null ? null : r.log_verified === 1,
    harnessStartedAt: r.harness_started_at,
    createdAt: r.created_at,
    startedAt: r.started_at,
    endedAt: r.ended_at,
    version: r.version,
  }))
export type RunRow = z.infer<typeof row>

export const parseRun = (value: unknown): RunRow => row.parse(value)
const parseMaybe = (value: unknown): RunRow | null => (value === undefined ? null : parseRun(value))

export interface NewRun {
  id: string
  workspaceId: string
  agentId: string
  triggerSource: string
  requestedBy: string | null
  causedByUserId: string | null
  harness: string
  environmentType: 'device' | 'cloud'
  folderId: string | null
  taskId: string | null
  taskKey: string | null
  taskTitle: string | null
  conversationId?: string | null
  parentRunId: string | null
  modelId: string | null
  reasoningEffort: string | null
  permissionMode: string
  createdAt: number
  /** Offered from the beginning, under fence 1. */
  offer?: { device: string; expiresAt: number } | null
}

const insert = command(
  `insert into runs (
     id, workspace_id, agent_id, status, trigger_source, requested_by, caused_by_user_id, harness, environment_type, folder_id, task_id,
     task_key, task_title, conversation_id, parent_run_id, model_id, reasoning_effort, permission_mode, created_at,
     fence, lease_state, device, offer_expires_at
   ) values (?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
)

export async function insertRun(db: Db, run: NewRun): Promise<void> {
  const { offer = null } = run
  await insert(db, [
    run.id,
    run.workspaceId,
    run.agentId,
    run.triggerSource,
    run.requestedBy,
    run.causedByUserId,
    run.harness,
    run.environmentType,
    run.folderId,
    run.taskId,
    run.taskKey,
    run.taskTitle,
    run.conversationId ?? null,
    run.parentRunId,
    run.modelId,
    run.reasoningEffort,
    run.permissionMode,
    run.createdAt,
    ...(offer === null ? [0, 'none', null, null] : [1, 'offered', offer.device, offer.expiresAt]),
  ])
}

export const runColumns = columnsOf(row)

/** A query for whole runs. */
export const runQuery = (where: string) => query(`select ${runColumns} from runs ${where}`, row)

const byId = runQuery('where id = ?')

export async function findRun(db: Db, id: string): Promise<RunRow | null> {
  return byId.first(db, [id])
}

/** Locked until the transaction ends. */
export async function lockRun(db: Db, id: string): Promise<RunRow | null> {
  const rows: unknown[] = await lockRows(db('runs').where({ id }))
  return parseMaybe(rows[0])
}

const byIdInWorkspace = runQuery('where id = ? and workspace_id = ?')

export async function findRunInWorkspace(db: Db, workspaceId: string, id: string): Promise<RunRow | null> {
  return byIdInWorkspace.first(db, [id, workspaceId])
}

/** The agent's last ended run of a task or conversation that has a harness session. */
export async function findLastWithSession(
  db: Db,
  of: { agentId: string; taskId: string | null; conversationId: string | null },
): Promise<RunRow | null> {
  if (of.taskId === null && of.conversationId === null) return null
  const query = db('runs').where({ agent_id: of.agentId }).whereNotNull('ended_at').whereNotNull('session_id')
  if (of.taskId !== null) void query.where({ task_id: of.taskId })
  else void query.where({ conversation_id: of.conversationId }).whereNull('task_id')
  return parseMaybe(
    await query
      .orderBy([
        { column: 'created_at', order: 'desc' },
        { column: 'id', order: 'desc' },
      ])
      .first(),
  )
}

/** The session is gone or full: no later run of the agent goes on with it. */
export async function forgetSession(db: Db, of: { agentId: string; sessionId: string }): Promise<void> {
  await db('runs').where({ agent_id: of.agentId, session_id: of.sessionId }).update({ session_id: null })
}

const markStarted = command(
  'update runs set harness_started_at = ? where id = ? and fence = ? and device = ? and harness_started_at is null',
)

/** Without effect when another device says so. */
export async function markHarnessStarted(
  db: Db,
  run: { id: string; fence: number; device: string; at: number },
): Promise<void> {
  await markStarted(db, [run.at, run.id, run.fence, run.device])
}

export async function setUngatedSince(db: Db, runId: string, at: number | null): Promise<void> {
  await db('runs').where({ id: runId, status: 'queued' }).update({ ungated_since: at })
}

export async function requestCancel(
  db: Db,
  cancel: { runId: string; exitReason: ExitReason; reason: string | null; at: number },
): Promise<boolean> {
  const changed = await db('runs')
    .where({ id: cancel.runId })
    .whereNull('ended_at')
    .whereNull('cancel_requested_at')
    .update({
      cancel_exit_reason: cancel.exitReason,
      cancel_reason: cancel.reason,
      cancel_requested_at: cancel.at,
    })
  return changed === 1
}

const succeed = command('update runs set successor_run_id = ? where id = ?')

export async function setSuccessor(db: Db, runId: string, successorRunId: string): Promise<void> {
  await succeed(db, [successorRunId, runId])
}

export interface Ending {
  runId: string
  /** Only the lease with this fence may end the run; null: the control plane ends it whoever holds it. */
  fence: number | null
  exitReason: ExitReason
  errorCode: string | null
  errorMessage: string | null
  at: number
  usage?: RunUsage | null
  toolCallCount?: number | null
  sessionId?: string | null
  gapBytes?: number
  logVerified?: boolean | null
}

/** Ends a live run: the one place a run gets its ending. False when it had ended, or the fence is not the run's. */
export async function endRun(db: Db, ending: Ending): Promise<boolean> {
  const query = db('runs').where({ id: ending.runId }).whereNull('ended_at')
  if (ending.fence !== null) void query.where({ fence: ending.fence, lease_state: 'claimed' })
  const changed = await query.update({
    status: statusOfExitReason(ending.exitReason),
    exit_reason: ending.exitReason,
    error_code: ending.errorCode,
    error_message: ending.errorMessage,
    ended_at: ending.at,
    lease_state: 'none',
    offer_expires_at: null,
    ...(ending.usage === undefined
      ? {}
      : { usage: toNullableJson(ending.usage), cost_usd: ending.usage?.costUsd ?? null }),
    ...(ending.toolCallCount === undefined ? {} : { tool_call_count: ending.toolCallCount }),
    ...(ending.sessionId === undefined ? {} : { session_id: ending.sessionId }),
    ...(ending.gapBytes === undefined ? {} : { gap_bytes: ending.gapBytes }),
    ...(ending.logVerified === undefined || ending.logVerified === null
      ? {}
      : { log_verified: ending.logVerified ? 1 : 0 }),
  })
  return changed === 1
}
