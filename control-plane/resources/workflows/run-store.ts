import type { PersonUuid, TaskId, WorkflowRunId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { z } from 'zod'
import { toolModes, workflowRunStatuses } from '../../../shared/api/workflow-words.ts'
import { flag, int, json, nullableJson, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import {
  actorRef,
  agentRef,
  personUuid,
  taskId,
  workflowId,
  workflowRunId,
  workspaceUuid,
} from '../../db/id-columns.ts'
import { newestFirst, type OlderPage } from '../../db/id-page.ts'
import type { Askable, Db, Tx } from '../../db/open.ts'
import { countBy } from '../../db/reads.ts'
import { query } from '../../db/statement.ts'
import { table, type RowOf } from '../../db/table.ts'
import { hiddenTask, type WorkViewer } from '../projects/work-visibility.ts'

// Runs of workflows, and the programs they were started with.

const programError = z.object({
  message: z.string(),
  line: z.number().int().nullable(),
  column: z.number().int().nullable(),
})
/** A call as a stall shows it. */
const shownCall = z.object({ kind: z.string(), args: z.string() })
/** The reason why a run stalled: what the journal has and what the program did, or a limit of the engine. */
const stall = z.object({
  message: z.string(),
  seq: z.number().int().nullable(),
  recorded: shownCall.nullable(),
  made: shownCall.nullable(),
})
export type Stall = z.output<typeof stall>

const runs = table(
  'workflow_runs',
  {
    id: workflowRunId,
    workspaceId: workspaceUuid,
    /** The name of the workflow. */
    workflow: text,
    /** null: a built-in one. */
    workflowId: workflowId.nullable(),
    programDigest: text,
    input: json(z.record(z.string(), z.unknown())),
    toolPermissionMode: z.enum(toolModes),
    status: z.enum(workflowRunStatuses),
    summary: nullableText,
    error: nullableJson(programError),
    /** The last lines that the program logged. */
    log: json(z.array(z.string())),
    taskId: taskId.nullable(),
    /** `agt_` id of the agent that does steps which name none; null: the task's assignee. */
    agentRef: agentRef.nullable(),
    /** Public id of the person (`usr_`) or agent (`agt_`) who started it. */
    startedByRef: actorRef.nullable(),
    /** Public id of the person (`usr_`) or agent (`agt_`) who last changed its program; null: it is a built-in one. */
    writtenByRef: actorRef.nullable(),
    /** UUID of the person who both wrote the program and started it; null: not one, or not known. */
    causedByUuid: personUuid.nullable(),
    /** The time at which its program first ran; null: not yet. */
    replayedAt: nullableTime,
    /** The time at which a person last let it try again; null: nobody has. */
    retriedAt: nullableTime,
    stall: nullableJson(stall),
    /** The size of its calls and results, in UTF-16 units. */
    journalBytes: int,
    /** A person answered the question about its stall so, or the one on whose account it goes has left the workspace. */
    cancelRequestedAt: nullableTime,
    version: int,
    createdAt: time,
    /** The time at which something of it last began, ended or moved. */
    changedAt: time,
    completedAt: nullableTime,
  },
  {
    columns: {
      agentRef: 'agent_id',
      startedByRef: 'started_by',
      writtenByRef: 'written_by',
      causedByUuid: 'caused_by_user_id',
    },
  },
)
export type WorkflowRunRow = RowOf<typeof runs>

export async function insertWorkflowRun(db: Db, run: Omit<WorkflowRunRow, 'version'>): Promise<void> {
  await runs.insert(db, { ...run, version: 1 })
}

/** Fails with `transient_conflict` when it was changed since it was read. */
export async function replaceWorkflowRun(
  db: Db,
  before: WorkflowRunRow,
  changes: Partial<WorkflowRunRow>,
): Promise<void> {
  await runs.replace(db, before, changes)
}

/** Writes the changes if the run is as it was read, and returns whether it is. The row is locked until the transaction ends. */
export async function takeWorkflowRun(
  tx: Tx,
  before: WorkflowRunRow,
  changes: Partial<WorkflowRunRow>,
): Promise<boolean> {
  return runs.replaceIfSame(tx, before, changes)
}

const byIdLocked = runs.query('where id = ? locked')

/** The run, locked until the transaction ends. */
export async function lockWorkflowRun(db: Db, id: WorkflowRunId): Promise<WorkflowRunRow | null> {
  return byIdLocked.first(db, [id])
}

export async function findWorkflowRunInWorkspace(
  db: Db,
  workspaceId: WorkspaceUuid,
  id: WorkflowRunId,
): Promise<WorkflowRunRow | null> {
  return runs.find(db, { workspaceId, id })
}

export async function listWorkflowRunsByIds(db: Db, ids: readonly WorkflowRunId[]): Promise<WorkflowRunRow[]> {
  return runs.list(runs.from(db).whereIn('id', [...ids]))
}

/** Returns whether the viewer sees this run. */
export async function seesWorkflowRun(db: Db, viewer: WorkViewer, id: WorkflowRunId): Promise<boolean> {
  const query = db('workflow_runs').where({ id })
  onlyVisible(query, viewer)
  return (await query.first('id')) !== undefined
}

/** Keeps the runs on tasks that the viewer sees, and those that they started or do steps of. */
function onlyVisible(query: Knex.QueryBuilder, viewer: WorkViewer): void {
  void query.where((any) => {
    void any.whereNotExists((hidden) => hiddenTask(hidden, { viewer, table: 'workflow_runs' }))
    if ('personUuid' in viewer) void any.orWhere({ started_by: viewer.personRef })
    else void any.orWhere({ started_by: viewer.agentRef }).orWhere({ agent_id: viewer.agentRef })
  })
}

/** Newest first; one row more than `limit`. */
export async function listWorkflowRuns(
  db: Db,
  filter: OlderPage & {
    workspaceId: WorkspaceUuid
    /** The viewer whose visible runs are listed; left out: all runs. */
    visibleTo?: WorkViewer
    status?: string
    workflow?: string
  },
): Promise<WorkflowRunRow[]> {
  const query = runs.from(db).where({ workspace_id: filter.workspaceId })
  if (filter.status !== undefined) void query.where({ status: filter.status })
  if (filter.workflow !== undefined) void query.where({ workflow: filter.workflow })
  if (filter.visibleTo) onlyVisible(query, filter.visibleTo)
  return runs.list(newestFirst(query, filter))
}

/** The newest run of a workflow about this task that is not over; null: there is none. */
export async function findOpenRunOnTask(
  db: Db,
  task: { workspaceId: WorkspaceUuid; id: TaskId },
): Promise<WorkflowRunRow | null> {
  const open = runs.from(db).where({ workspace_id: task.workspaceId, task_id: task.id }).whereNull('completed_at')
  return runs.first(open.orderBy('created_at', 'desc'))
}

/** The number of runs of each of these workflows that has any. */
export async function countRunsByWorkflow(
  db: Db,
  workspaceId: WorkspaceUuid,
  names: readonly string[],
): Promise<Map<string, number>> {
  const rows = db('workflow_runs')
    .where({ workspace_id: workspaceId })
    .whereIn('workflow', [...names])
  return countBy(rows, 'workflow')
}

/** The newest run of each of these workflows that has any. */
export async function listLastRuns(
  db: Db,
  workspaceId: WorkspaceUuid,
  names: readonly string[],
): Promise<Map<string, WorkflowRunRow>> {
  if (names.length === 0) return new Map()
  const last = `select id from (
    select id from workflow_runs where workspace_id = ? and workflow = ? order by created_at desc, id desc limit 1
  ) as last`
  const lasts = db.raw(
    names.map(() => last).join(' union all '),
    names.flatMap((name) => [workspaceId, name]),
  )
  const found = await runs.list(runs.from(db).whereRaw('id in (?)', [lasts]))
  return new Map(found.map((run) => [run.workflow, run]))
}

/**
 * Keeps the runs of workspaces that let their agents work. The others wait for as long as that takes: in a list with a limit they
 * would stand before those of all other workspaces.
 */
export function onlyAwake(query: Knex.QueryBuilder): void {
  void query.whereExists((awake) => {
    void awake
      .from('workspaces')
      .select('workspaces.id')
      .whereRaw('workspaces.id = workflow_runs.workspace_id')
      .where({ 'workspaces.status': 'active', 'workspaces.agents_paused': 0 })
  })
}

/**
 * Runs in progress that wait for nothing and have not changed since `changedBefore`, those longest silent first.
 * `onlyReplayed`: without those whose program has yet to run for the first time.
 */
export async function listUnchanged(
  db: Db,
  filter: { changedBefore: number; onlyReplayed: boolean; limit: number },
): Promise<WorkflowRunRow[]> {
  const query = runs
    .from(db)
    .where({ status: 'running' })
    .where('changed_at', '<', filter.changedBefore)
    .whereNotExists((open) => {
      void open
        .from('workflow_calls')
        .select(db.raw('1'))
        .whereRaw('workflow_calls.workflow_run_id = workflow_runs.id')
        .whereNull('workflow_calls.advanced_at')
    })
  if (filter.onlyReplayed) void query.whereNotNull('replayed_at')
  onlyAwake(query)
  return runs.list(query.orderBy(['changed_at', 'id']).limit(filter.limit))
}

const programs = table('workflow_programs', { workspaceId: workspaceUuid, digest: text, source: text })

/** Stores the program unless the workspace has it already. */
export async function insertProgram(db: Db, program: RowOf<typeof programs>): Promise<void> {
  await programs.insertNew(db, program, ['workspaceId', 'digest'])
}

const toAdvance = query(
  `select ${runs.select('runs')}, source, workspaces.status as workspace_status, agents_paused, is_billing_locked
   from workflow_runs runs join workspaces on workspaces.id = runs.workspace_id
   left join workflow_programs programs
     on programs.workspace_id = runs.workspace_id and programs.digest = runs.program_digest
   where runs.id = ?`,
  z
    .looseObject({
      source: nullableText,
      workspace_status: z.enum(['active', 'archived']),
      agents_paused: flag,
      is_billing_locked: flag,
    })
    .transform(({ source, workspace_status, agents_paused, is_billing_locked, ...row }) => ({
      run: runs.part(row),
      source,
      workspace: { status: workspace_status, agentsPaused: agents_paused, isBillingLocked: is_billing_locked },
    })),
)

/** The run with its program, and whether its workspace lets agents work. */
export async function findRunToAdvance(db: Askable, id: WorkflowRunId) {
  return toAdvance.first(db, [id])
}

/** Runs in progress whose program has not run yet and may run now, oldest first. */
export async function listUnreplayed(
  db: Db,
  limit: number,
): Promise<{ id: WorkflowRunId; workspaceId: WorkspaceUuid }[]> {
  const query = db('workflow_runs').where({ status: 'running' }).whereNull('replayed_at')
  onlyAwake(query)
  return idsOf(query, limit)
}

/** Ids of the workspace's runs in progress, oldest first. */
export async function listRunningWorkflowRuns(
  db: Db,
  workspaceId: WorkspaceUuid,
  limit: number,
): Promise<WorkflowRunId[]> {
  const runs = await idsOf(db('workflow_runs').where({ workspace_id: workspaceId, status: 'running' }), limit)
  return runs.map(({ id }) => id)
}

/** Runs that are to be cancelled and have not ended, oldest first. */
export async function listCancelled(
  db: Db,
  limit: number,
): Promise<{ id: WorkflowRunId; workspaceId: WorkspaceUuid }[]> {
  return idsOf(db('workflow_runs').whereNull('completed_at').whereNotNull('cancel_requested_at'), limit)
}

/** Runs on the account of this person that have not ended, oldest first. */
export async function listOpenWorkflowRunsCausedBy(
  db: Db,
  { personUuid, workspaceId }: { personUuid: PersonUuid; workspaceId?: WorkspaceUuid },
): Promise<WorkflowRunRow[]> {
  const open = runs
    .from(db)
    .whereNull('completed_at')
    .where({ caused_by_user_id: personUuid, ...(workspaceId !== undefined && { workspace_id: workspaceId }) })
  return runs.list(open.orderBy('created_at'))
}

async function idsOf(
  query: Knex.QueryBuilder,
  limit: number,
): Promise<{ id: WorkflowRunId; workspaceId: WorkspaceUuid }[]> {
  return query.orderBy('created_at').limit(limit).select({ id: 'id', workspaceId: 'workspace_id' })
}
