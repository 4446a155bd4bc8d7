import type { RunId, TaskId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { harnessNames } from '../../../shared/runs/harnesses.ts'
import { int, json, nullableFlag, nullableText, nullableTime, time } from '../../db/columns.ts'
import {
  agentRef,
  deviceRef,
  folderRef,
  personUuid,
  runId,
  secretId,
  taskId,
  workspaceUuid,
} from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { query } from '../../db/statement.ts'
import { notCancelled } from '../../resources/runs/cancellation-store.ts'
import { listLiveOfTask } from '../../resources/runs/live-store.ts'
import { toRunFacts } from './facts.ts'
import type { RunFacts } from '../places/place.ts'

/** A queued run that was not offered, with what its placement depends on. */
export interface WaitingRun {
  id: RunId
  workspaceId: WorkspaceUuid
  taskId: TaskId | null
  createdAt: number
  /** The time by which the run is ordered among those that wait (ms). */
  inLineSince: number
  /** The time since which sweeps found nothing in its way (ms). */
  ungatedSince: number | null
  facts: RunFacts
}

const row = z
  .object({
    id: runId,
    workspace_id: workspaceUuid,
    agent_id: agentRef,
    harness: z.enum(harnessNames),
    environment_type: z.enum(['device', 'cloud']),
    folder_id: folderRef.nullable(),
    task_id: taskId.nullable(),
    created_at: time,
    in_line: time,
    ungated_since: nullableTime,
    owner_user_id: personUuid.nullable(),
    transferred_at: nullableTime,
    caused_by_user_id: personUuid.nullable(),
    words_by: json(z.array(personUuid.nullable())),
    instructions_by: json(z.array(personUuid.nullable())),
    agent_visibility: z.enum(['company', 'private']).nullable(),
    is_confidential: int,
    provider_key_id: secretId.nullable(),
    fallback_harness: z.enum(harnessNames).nullable(),
    fallback_key_id: secretId.nullable(),
    fallback_model: nullableText,
    model_id: nullableText,
    compacts: nullableFlag,
    folder_device: deviceRef.nullable(),
    sandbox_device: deviceRef.nullable(),
    session_id: nullableText,
    session_device: deviceRef.nullable(),
    is_cause_gone: int,
    waits_for_other_run: int,
    is_behind: int,
  })
  .transform((r): WaitingRun & { isBehind: boolean } => ({
    id: r.id,
    workspaceId: r.workspace_id,
    taskId: r.task_id,
    createdAt: r.created_at,
    inLineSince: r.in_line,
    ungatedSince: r.ungated_since,
    isBehind: r.is_behind === 1,
    facts: toRunFacts(
      {
        agentRef: r.agent_id,
        harness: r.harness,
        environmentType: r.environment_type,
        folderId: r.folder_id,
        causedByUuid: r.caused_by_user_id,
        wordsBy: r.words_by,
        instructionsBy: r.instructions_by,
        providerKeyId: r.provider_key_id,
        fallbackHarness: r.fallback_harness,
        fallbackKeyId: r.fallback_key_id,
        fallbackModel: r.fallback_model,
        modelId: r.model_id,
        compacts: r.compacts,
      },
      {
        agent: r.agent_visibility && {
          ownerUuid: r.owner_user_id,
          transferredAt: r.transferred_at,
          visibility: r.agent_visibility,
        },
        folder: r.folder_device === null ? null : { device: r.folder_device },
        parent: { sessionId: r.session_id, device: r.session_device },
        isConfidential: r.is_confidential === 1,
        isCauseGone: r.is_cause_gone === 1,
        waitsForOtherRun: r.waits_for_other_run === 1,
        ahead: [],
        sandbox: r.sandbox_device,
      },
    ),
  }))

/** Tells in SQL what `isWorkPrivate` says of a wake, and whether secrets are given. */
const isConfidential = `(
  agents.visibility = 'private'
  or exists (select 1 from secret_grants where secret_grants.agent_id = runs.agent_id)
  or exists (
    select 1 from tasks join projects on projects.id = tasks.project_id
    where tasks.id = runs.task_id and projects.visibility = 'private'
  )
  or exists (
    select 1 from conversations
    where conversations.id = runs.conversation_id and conversations.kind = 'dm' and conversations.task_id is null
  )
)`

const inLine = 'coalesce(runs.in_line_since, runs.created_at)'

/**
 * The lock of a task: one run at a time works on it. A run that waits is held while another one of its task is offered or at
 * work, or was made before it and is not held by trust (`ahead` of its facts); `findOthersOfTask` says the same of a run that is
 * about to be made. A run that is about to be cancelled waits no more. A run that goes on with a session waits until nobody makes that smaller any more.
 */
const waiting = (where: string) =>
  query(
    `select runs.id, runs.workspace_id, runs.agent_id, runs.harness, runs.environment_type, runs.folder_id, runs.task_id, runs.created_at,
       ${inLine} as in_line,
       runs.ungated_since, runs.caused_by_user_id, runs.words_by, runs.instructions_by, runs.provider_key_id, runs.fallback_harness, runs.fallback_key_id, runs.fallback_model, runs.model_id, runs.compacts,
       agents.owner_user_id, agents.transferred_at, agents.visibility as agent_visibility, folders.device as folder_device, sandboxes.device as sandbox_device, parents.session_id,
       parents.device as session_device,
       case when runs.caused_by_user_id is not null and not exists (
         select 1 from members where members.workspace_id = runs.workspace_id and members.user_id = runs.caused_by_user_id
       ) then 1 else 0 end as is_cause_gone,
       case when runs.task_id is not null and exists (
         select 1 from runs others where others.task_id = runs.task_id and others.ended_at is null and others.id <> runs.id
           and others.lease_state <> 'none'
       ) then 1 when runs.compacts is null and parents.session_id is not null and exists (
         select 1 from runs compacting join runs idle on idle.id = compacting.parent_run_id
         where compacting.agent_id = runs.agent_id and compacting.compacts = 1 and compacting.ended_at is null
           and idle.session_id = parents.session_id
       ) then 1 else 0 end as waits_for_other_run,
       case when runs.task_id is not null and exists (
         select 1 from runs others where others.task_id = runs.task_id and others.ended_at is null and others.id <> runs.id
           and others.lease_state = 'none' and (others.created_at, others.id) < (runs.created_at, runs.id)
       ) then 1 else 0 end as is_behind,
       case when ${isConfidential} then 1 else 0 end as is_confidential
     from runs
     left join agents on agents.id = runs.agent_id
     left join folders on folders.workspace_id = runs.workspace_id and folders.short_id = runs.folder_id
       and folders.removed_at is null
     left join sandboxes on sandboxes.run_id = runs.id and sandboxes.removed_at is null and sandboxes.state <> 'ended'
     left join runs parents on parents.id = runs.parent_run_id
     where runs.ended_at is null and runs.status = 'queued' and runs.lease_state = 'none' and ${notCancelled} and ${where}
     order by ${inLine}, runs.id limit ?`,
    row,
  )

const byId = waiting('runs.id = ?')
const byIds = waiting('runs.id in ?')
const ofWorkspace = waiting(`runs.workspace_id = ? and (${inLine}, runs.id) > (?, ?)`)

const ofTasks = waiting('runs.task_id in ?')

/** The runs that are looked at; a run behind more of them is held. */
const mostAhead = 5_000

export interface OthersOfTask {
  /** A device has one of its runs. */
  isTaken: boolean
  /** Runs of the task that wait. Those that a device may take are done first. */
  ahead: readonly RunFacts[]
}
export const noOthers: OthersOfTask = { isTaken: false, ahead: [] }

/** Returns the runs that may hold up a new run of the task: each live run of the task was made before it. */
export async function findOthersOfTask(db: Db, taskId: TaskId): Promise<OthersOfTask> {
  const live = await listLiveOfTask(db, taskId)
  if (live.length === 0) return noOthers
  if (live.some(({ leaseState }) => leaseState !== 'none') || live.length > mostAhead)
    return { isTaken: true, ahead: [] }
  return { isTaken: false, ahead: distinct((await ofTasks.list(db, [[taskId], mostAhead])).map(({ facts }) => facts)) }
}

/** Reads what waits before the runs that are not the first of their tasks. */
async function withAhead(db: Db, runs: readonly (WaitingRun & { isBehind: boolean })[]): Promise<WaitingRun[]> {
  const behind = runs.filter((run) => run.isBehind && !run.facts.waitsForOtherRun)
  const taskIds = [...new Set(behind.map(({ taskId }) => taskId!))]
  const first = taskIds.length === 0 ? [] : await ofTasks.list(db, [taskIds, mostAhead])
  const inOrder = first.toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
  const ofTask = Map.groupBy(inOrder, ({ taskId }) => taskId)
  return runs.map(({ isBehind, ...run }) => {
    const others = isBehind ? (ofTask.get(run.taskId) ?? []) : []
    if (others.length === 0) return run
    const at = others.findIndex(({ id }) => id === run.id)
    const waitsForOtherRun = run.facts.waitsForOtherRun || at === -1
    const ahead = waitsForOtherRun ? [] : distinct(others.slice(0, at).map(({ facts }) => facts))
    return { ...run, facts: { ...run.facts, waitsForOtherRun, ahead } }
  })
}

/** Keeps one of all runs that trust judges alike, since anybody may wake an agent for a task as often as they like. */
function distinct(ahead: readonly RunFacts[]): RunFacts[] {
  const kinds = new Map<string, RunFacts>()
  for (const run of ahead) {
    const { agentRef, causedByUuid, wordsBy, isConfidential, isCauseGone, folderDevice, sessionDevice, isForSession } =
      run
    const kind = [
      agentRef,
      causedByUuid,
      wordsBy,
      isConfidential,
      isCauseGone,
      folderDevice,
      sessionDevice,
      isForSession,
    ]
    kinds.set(JSON.stringify(kind), run)
  }
  return [...kinds.values()]
}

/** Returns the ones of these runs that wait, oldest first. */
export async function findWaiting(db: Db, runIds: readonly RunId[]): Promise<WaitingRun[]> {
  const [first, ...others] = runIds
  if (first !== undefined && others.length === 0) return withAhead(db, await byId.list(db, [first, 1]))
  return withAhead(db, await byIds.list(db, [runIds, runIds.length]))
}

const workspacesOf = query(
  `select distinct workspace_id from runs where ended_at is null and status = 'queued' and lease_state = 'none'`,
  z.object({ workspace_id: workspaceUuid }),
)

/** The workspaces in which runs wait. */
export const listWaitingWorkspaces = async (db: Db): Promise<WorkspaceUuid[]> =>
  (await workspacesOf.list(db, [])).map((row) => row.workspace_id)

export interface WaitingPage {
  workspaceId: WorkspaceUuid
  /** The last one of the page before. */
  after: WaitingRun | null
  limit: number
}

/** Lists the runs that wait, oldest first. */
export async function listWaiting(db: Db, { workspaceId, after, limit }: WaitingPage): Promise<WaitingRun[]> {
  return withAhead(db, await ofWorkspace.list(db, [workspaceId, after?.inLineSince ?? -1, after?.id ?? '', limit]))
}
