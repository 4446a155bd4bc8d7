import type {
  AgentRef,
  ConversationId,
  DeviceRef,
  RunId,
  TaskId,
  WorkflowRunId,
  WorkspaceUuid,
} from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { usageData, type RunUsage } from '../../../shared/runs/events.ts'
import { statusOfExitReason, type ExitReason } from '../../../shared/runs/exit-reasons.ts'
import { runStatuses } from '../../../shared/runs/exit-reasons.ts'
import { harnessNames } from '../../../shared/runs/harnesses.ts'
import {
  int,
  json,
  nullableFlag,
  nullableInt,
  nullableJson,
  nullableText,
  nullableTime,
  text,
  time,
} from '../../db/columns.ts'
import {
  actorRef,
  agentRef,
  conversationId,
  deviceRef,
  folderRef,
  personUuid,
  repoUuid,
  runId,
  secretId,
  taskId,
  workflowRunId,
  workspaceUuid,
} from '../../db/id-columns.ts'
import type { Askable, Db } from '../../db/open.ts'
import { detailsInsert, type NewDetails } from './details-table.ts'
import { insertBoth, table, type RowOf } from '../../db/table.ts'
import { command, query } from '../../db/statement.ts'

/** A row of `runs`. `leaseState`: none, offered (to `device` until `offerExpiresAt`), claimed (by `device`). */
export const runs = table('runs', {
  id: runId,
  workspaceId: workspaceUuid,
  agentId: agentRef,
  status: z.enum(runStatuses),
  triggerSource: text,
  requestedBy: actorRef.nullable(),
  /** UUID of the person at the root of its chain of wakes; null: not known. */
  causedByUserId: personUuid.nullable(),
  /** Others whose words it follows; null: of somebody who is not known. */
  wordsBy: json(z.array(personUuid.nullable())),
  /** Who wrote the AGENT.md that it follows; empty: it follows none. */
  instructionsBy: json(z.array(personUuid.nullable())),
  harness: z.enum(harnessNames),
  environmentType: z.enum(['device', 'cloud']),
  folderId: folderRef.nullable(),
  /** Of a cloud run: the repository in its sandbox. */
  repoId: repoUuid.nullable(),
  taskId: taskId.nullable(),
  taskKey: nullableText,
  taskTitle: nullableText,
  conversationId: conversationId.nullable(),
  parentRunId: runId.nullable(),
  successorRunId: runId.nullable(),
  fence: int,
  leaseState: z.enum(['none', 'offered', 'claimed']),
  device: deviceRef.nullable(),
  offerExpiresAt: nullableTime,
  /** Its place among those that wait, where that is not `createdAt`: it goes on with the work of a run that was first. */
  inLineSince: nullableTime,
  ungatedSince: nullableTime,
  cancelExitReason: nullableText,
  cancelReason: nullableText,
  cancelRequestedAt: nullableTime,
  exitReason: nullableText,
  errorCode: nullableText,
  errorMessage: nullableText,
  modelId: nullableText,
  reasoningEffort: nullableText,
  /** The agent's secret (`sec_`) that the harness takes as its key; null: the harness uses the device's own sign-in. */
  providerKeyId: secretId.nullable(),
  /** The harness on which the run goes while a provider's limit keeps it from its harness, with the agent's key for that one. */
  fallbackHarness: z.enum(harnessNames).nullable(),
  fallbackKeyId: secretId.nullable(),
  fallbackModel: nullableText,
  /** It makes the session of the run that it continues smaller, and does nothing else. */
  compacts: nullableFlag,
  /** The workflow run (`flr_`) of which it does a step, and the number of that call. */
  workflowRunId: workflowRunId.nullable(),
  workflowCall: nullableInt,
  permissionMode: nullableText,
  sessionId: nullableText,
  usage: nullableJson(usageData),
  costUsd: nullableText,
  toolCallCount: nullableInt,
  /** When the provider's limit, by which the run ended, is over; null: it did not end so, or nobody said when. */
  limitResetsAt: nullableTime,
  /** Its provider failed, which ended it; null: nobody said so. */
  providerFailed: nullableFlag,
  eventSeq: int,
  eventBytes: int,
  gapBytes: int,
  logVerified: nullableFlag,
  harnessStartedAt: nullableTime,
  /** Of its harness's program, once it has ended; null: its device did not say. */
  harnessVersion: nullableText,
  createdAt: time,
  startedAt: nullableTime,
  endedAt: nullableTime,
  version: int,
})
export type RunRow = RowOf<typeof runs>

const given = [
  'id',
  'workspaceId',
  'agentId',
  'triggerSource',
  'requestedBy',
  'causedByUserId',
  'wordsBy',
  'instructionsBy',
  'harness',
  'environmentType',
  'folderId',
  'repoId',
  'taskId',
  'taskKey',
  'taskTitle',
  'conversationId',
  'parentRunId',
  'modelId',
  'reasoningEffort',
  'permissionMode',
  'providerKeyId',
  'fallbackHarness',
  'fallbackKeyId',
  'fallbackModel',
  'compacts',
  'inLineSince',
  'workflowRunId',
  'workflowCall',
  'createdAt',
] as const
type Given = Pick<RunRow, (typeof given)[number]>
export type NewRun = Omit<Given, 'workflowRunId' | 'workflowCall'> & {
  /** The step of a workflow that it does; null or left out: none. */
  step?: RunStep | null
  /** Offered from the beginning, under fence 1. */
  offer?: { device: DeviceRef; expiresAt: number } | null
}

export interface RunStep {
  workflowRunId: WorkflowRunId
  call: number
}

const insert = insertBoth(
  runs.inserter([...given, 'status', 'fence', 'leaseState', 'device', 'offerExpiresAt']),
  detailsInsert,
)

export async function insertRun(
  db: Db,
  { offer = null, step = null, ...run }: NewRun,
  details: NewDetails,
): Promise<void> {
  const row = {
    ...run,
    workflowRunId: step?.workflowRunId ?? null,
    workflowCall: step?.call ?? null,
    status: 'queued',
    fence: offer === null ? 0 : 1,
    leaseState: offer === null ? 'none' : 'offered',
    device: offer?.device ?? null,
    offerExpiresAt: offer?.expiresAt ?? null,
  } as const
  await insert(db, row, { ...details, runId: run.id })
}

const byId = runs.query('where id = ?')
const byIdLocked = runs.query('where id = ? locked')

export async function findRun(db: Askable, id: RunId): Promise<RunRow | null> {
  return byId.first(db, [id])
}

/** Locked until the transaction ends. */
export async function lockRun(db: Db, id: RunId): Promise<RunRow | null> {
  return byIdLocked.first(db, [id])
}

const byIdInWorkspace = runs.query('where id = ? and workspace_id = ?')

export async function findRunInWorkspace(db: Db, workspaceId: WorkspaceUuid, id: string): Promise<RunRow | null> {
  return byIdInWorkspace.first(db, [id, workspaceId])
}

/** The agent's last ended run of a task or conversation that has a harness session. */
export async function findLastWithSession(
  db: Db,
  of: { agentId: AgentRef; taskId: TaskId | null; conversationId: ConversationId | null },
): Promise<RunRow | null> {
  if (of.taskId === null && of.conversationId === null) return null
  const query = runs.from(db).where({ agent_id: of.agentId }).whereNotNull('ended_at').whereNotNull('session_id')
  if (of.taskId !== null) void query.where({ task_id: of.taskId })
  else void query.where({ conversation_id: of.conversationId }).whereNull('task_id')
  return runs.first(query.orderByRaw('created_at desc, id desc'))
}

const worked = query(
  `select 1 as found from
     (select agent_id, harness_started_at from runs where task_id = ? order by created_at desc, id desc limit 200) latest
   where agent_id = ? and harness_started_at is not null limit 1`,
  z.object({ found: z.number() }),
)

/** Whether a harness of the agent began to work on the task, among its last 200 runs. */
export async function hasWorkedOn(db: Askable, of: { agentId: AgentRef; taskId: TaskId }): Promise<boolean> {
  return (await worked.first(db, [of.taskId, of.agentId])) !== null
}

/** The session is gone or full: no later run of the agent goes on with it. */
export async function forgetSession(db: Db, of: { agentId: AgentRef; sessionId: string }): Promise<void> {
  await db('runs').where({ agent_id: of.agentId, session_id: of.sessionId }).update({ session_id: null })
}

const markStarted = command(
  'update runs set harness_started_at = ? where id = ? and fence = ? and device = ? and harness_started_at is null',
)

/** Without effect when another device says so. */
export async function markHarnessStarted(
  db: Db,
  run: { id: RunId; fence: number; device: DeviceRef; at: number },
): Promise<void> {
  await markStarted(db, [run.at, run.id, run.fence, run.device])
}

export async function setUngatedSince(db: Db, runId: RunId, at: number | null): Promise<void> {
  await db('runs').where({ id: runId, status: 'queued' }).update({ ungated_since: at })
}

export async function requestCancel(
  db: Db,
  cancel: { runId: RunId; exitReason: ExitReason; reason: string | null; at: number },
): Promise<boolean> {
  const { exitReason: cancelExitReason, reason: cancelReason, at: cancelRequestedAt } = cancel
  const changed = await runs.update(
    db,
    { id: cancel.runId, endedAt: null, cancelRequestedAt: null },
    { cancelExitReason, cancelReason, cancelRequestedAt },
  )
  return changed === 1
}

const succeed = command('update runs set successor_run_id = ? where id = ?')

export async function setSuccessor(db: Db, runId: RunId, successorRunId: RunId): Promise<void> {
  await succeed(db, [successorRunId, runId])
}

const addWords = command("update runs set error_message = coalesce(error_message || ' ', '') || ? where id = ?")
/** Adds a sentence to what is told of how a run ended. */
export async function addToErrorMessage(db: Db, runId: RunId, sentence: string): Promise<void> {
  await addWords(db, [sentence, runId])
}

export interface Ending {
  runId: RunId
  /** Only the lease with this fence may end the run; null: the control plane ends it whoever holds it. */
  fence: number | null
  exitReason: ExitReason
  errorMessage: string | null
  /** When the control plane ends it. */
  at: number
  /** When it ended on its device; left out: at the same time. */
  endedAt?: number
  usage?: RunUsage | null
  toolCallCount?: number | null
  sessionId?: string | null
  gapBytes?: number
  logVerified?: boolean | null
  limitResetsAt?: number | null
  providerFailed?: boolean
  harnessVersion?: string | null
}

/** Ends a live run: the one place a run gets its ending. False when it had ended, or the fence is not the run's. */
export async function endRun(db: Db, ending: Ending): Promise<boolean> {
  const { fence, exitReason, errorMessage, usage, toolCallCount, sessionId, gapBytes, logVerified } = ending
  const { limitResetsAt, providerFailed, harnessVersion } = ending
  const status = statusOfExitReason(exitReason)
  const changed = await runs.update(
    db,
    { id: ending.runId, endedAt: null, ...(fence !== null && { fence, leaseState: 'claimed' }) },
    {
      status,
      exitReason,
      errorCode: status === 'failed' ? exitReason : null,
      errorMessage,
      endedAt: ending.endedAt ?? ending.at,
      leaseState: 'none',
      offerExpiresAt: null,
      ...(usage !== undefined && { usage, costUsd: usage?.costUsd ?? null }),
      toolCallCount,
      sessionId,
      gapBytes,
      ...(logVerified != null && { logVerified }),
      ...(limitResetsAt != null && { limitResetsAt }),
      ...(providerFailed === true && { providerFailed }),
      ...(harnessVersion != null && { harnessVersion }),
    },
  )
  return changed === 1
}
