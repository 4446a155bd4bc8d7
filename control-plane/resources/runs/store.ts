import type { AgentRef, ConversationId, RunId, TaskId, WorkflowRunId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { usageData } from '../../../shared/runs/events.ts'
import { runSpans } from '../../../shared/runs/spans.ts'
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
import { table, type RowOf } from '../../db/table.ts'
import { query } from '../../db/statement.ts'

/** A row of `runs`. `leaseState`: none, offered (to `device` until `offerExpiresAt`), claimed (by `device`). */
export const runs = table(
  'runs',
  {
    id: runId,
    workspaceId: workspaceUuid,
    agentRef,
    status: z.enum(runStatuses),
    triggerSource: text,
    requestedByRef: actorRef.nullable(),
    /** UUID of the person at the root of its chain of wakes; null: not known. */
    causedByUuid: personUuid.nullable(),
    /** The UUIDs of others whose words the run follows; null among them: somebody who is not known. */
    wordsBy: json(z.array(personUuid.nullable())),
    /** The UUIDs of those who wrote the AGENT.md that the run follows, null for one who is not known; empty: it follows none. */
    instructionsBy: json(z.array(personUuid.nullable())),
    harness: z.enum(harnessNames),
    environmentType: z.enum(['device', 'cloud']),
    folderId: folderRef.nullable(),
    /** The repository in the sandbox of a cloud run; null: there is none. */
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
    /** The last offer to a device; null: it was never offered, or waits again. */
    offeredAt: nullableTime,
    offerExpiresAt: nullableTime,
    /**
     * The place (ms UTC) among the runs that wait, where it goes on with the work of a run that was first; null: `createdAt` is the place.
     */
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
    /** The run makes the session of the run that it continues smaller, and does nothing else. */
    compacts: nullableFlag,
    /** The workflow run (`flr_`) of which it does a step, and the number of that call. */
    workflowRunId: workflowRunId.nullable(),
    workflowCall: nullableInt,
    permissionMode: nullableText,
    sessionId: nullableText,
    usage: nullableJson(usageData),
    costUsd: nullableText,
    toolCallCount: nullableInt,
    /** The time (ms UTC) at which the provider's limit is over by which the run ended; null: it did not end so, or nobody said when. */
    limitResetsAt: nullableTime,
    /** The provider failed, which ended the run; null: nobody said so. */
    providerFailed: nullableFlag,
    eventSeq: int,
    eventBytes: int,
    gapBytes: int,
    logVerified: nullableFlag,
    harnessStartedAt: nullableTime,
    /** The version of the harness's program, once the run has ended; null: its device did not say. */
    harnessVersion: nullableText,
    /** How long its steps took on its device; null: it has not ended there, or nobody said. */
    spans: nullableJson(runSpans),
    createdAt: time,
    startedAt: nullableTime,
    endedAt: nullableTime,
    version: int,
  },
  { columns: { agentRef: 'agent_id', requestedByRef: 'requested_by', causedByUuid: 'caused_by_user_id' } },
)
export type RunRow = RowOf<typeof runs>

export interface RunStep {
  workflowRunId: WorkflowRunId
  call: number
}

const byId = runs.query('where id = ?')
const byIdLocked = runs.query('where id = ? locked')

export async function findRun(db: Askable, id: RunId): Promise<RunRow | null> {
  return byId.first(db, [id])
}

const byIds = runs.query('where id in ?')

/** The ones of these runs that there are, in no order. */
export async function listGivenRuns(db: Askable, ids: readonly RunId[]): Promise<RunRow[]> {
  return byIds.list(db, [ids])
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
  of: { agentRef: AgentRef; taskId: TaskId | null; conversationId: ConversationId | null },
): Promise<RunRow | null> {
  if (of.taskId === null && of.conversationId === null) return null
  const query = runs.from(db).where({ agent_id: of.agentRef }).whereNotNull('ended_at').whereNotNull('session_id')
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

/** Returns whether a harness of the agent began to work on the task, among its last 200 runs. */
export async function hasWorkedOn(db: Askable, of: { agentRef: AgentRef; taskId: TaskId }): Promise<boolean> {
  return (await worked.first(db, [of.taskId, of.agentRef])) !== null
}
