import type { AgentRef, RunId, WorkflowRunId, WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { z } from 'zod'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import type {
  StartedWorkflowRun,
  Workflow,
  WorkflowRow as ShownRow,
  WorkflowRun,
  WorkflowStep,
} from '../../../../shared/api/workflow-fields.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { listAgentIdentities } from '../../agents/identity-store.ts'
import { isAgentVisible, viewerOfAgents } from '../../agents/rules.ts'
import { listHoldingApprovals, type ApprovalRow } from '../../approvals/store.ts'
import { listOpenQuestions, type QuestionRow } from '../../questions/store.ts'
import { workViewerOf } from '../../projects/work-visibility.ts'
import type { RunRow } from '../../runs/store.ts'
import { visibleTasks } from '../../tasks/lookup.ts'
import { listTasksByIds } from '../../tasks/store.ts'
import { listCallsOf, type CallRow } from '../call-store.ts'
import { stepStateOf } from '../rules.ts'
import { countRunsByWorkflow, listLastRuns, type WorkflowRunRow } from '../run-store.ts'
import { listRunsOfSteps } from '../step-store.ts'
import type { WorkflowRow } from '../store.ts'

// Workflows and their runs as this caller reads them: private agents that they do not see stay unnamed.

type Agents = ReadonlyMap<AgentRef, { id: AgentRef; name: string; handle: string }>

async function visibleAgents(db: Db, caller: Caller, ids: readonly (AgentRef | null)[]): Promise<Agents> {
  const known = await listAgentIdentities(db, [...new Set(ids.filter((id) => id !== null))])
  const viewer = viewerOfAgents(caller)
  return new Map(
    known
      .filter((agent) => isAgentVisible(agent, viewer))
      .map(({ id, name, handle }) => [id, { id, name, handle: `@${handle}` }]),
  )
}

export async function presentWorkflow(db: Db, caller: Caller, row: WorkflowRow): Promise<Workflow> {
  return toWorkflow(row, await visibleAgents(db, caller, [row.authorAgentRef]))
}

/** Shows workflows with their last runs; all are of the caller's workspace. */
export async function presentWorkflows(db: Db, caller: Caller, rows: readonly WorkflowRow[]): Promise<ShownRow[]> {
  const names = rows.map(({ name }) => name)
  const activity = await runActivity(db, caller.workspaceId, names)
  const agents = await visibleAgents(
    db,
    caller,
    rows.map(({ authorAgentRef }) => authorAgentRef),
  )
  return rows.map((row) => ({ ...toWorkflow(row, agents), ...activity(row.name) }))
}

/** The last run and the number of runs of workflows of these names. */
export async function runActivity(
  db: Db,
  workspaceId: WorkspaceUuid,
  names: readonly string[],
): Promise<(name: string) => Pick<ShownRow, 'lastRun' | 'runCount'>> {
  const counts = await countRunsByWorkflow(db, workspaceId, names)
  const lastRuns = await listLastRuns(db, workspaceId, names)
  return (name) => {
    const last = lastRuns.get(name) ?? null
    return {
      lastRun: last && { id: last.id, status: last.status, startedAt: toTimestamp(last.createdAt) },
      runCount: counts.get(name) ?? 0,
    }
  }
}

function toWorkflow(row: WorkflowRow, agents: Agents): Workflow {
  const { id, name, title, description, inputs, toolPermissionMode, source, version } = row
  return {
    object: 'workflow',
    id,
    name,
    title,
    description,
    inputs,
    toolPermissionMode,
    source,
    version,
    author: (row.authorAgentRef === null ? null : agents.get(row.authorAgentRef)) ?? null,
    retiredAt: toTimestamp(row.retiredAt),
    createdAt: toTimestamp(row.createdAt),
    updatedAt: toTimestamp(row.updatedAt),
  }
}

function runFields(run: WorkflowRunRow, parked?: QuestionRow, checks?: CallRow): Omit<StartedWorkflowRun, 'taskId'> {
  return {
    object: 'workflow_run',
    id: run.id,
    workflow: run.workflow,
    status: run.status,
    input: run.input,
    summary: run.summary,
    error: run.error,
    toolPermissionMode: run.toolPermissionMode,
    parkedQuestion: parked === undefined ? null : toParked(parked),
    parkedChecks: checks === undefined ? null : toParkedChecks(checks),
    log: run.log,
    startedAt: toTimestamp(run.createdAt),
    completedAt: toTimestamp(run.completedAt),
  }
}

const isOpenChecks = ({ kind, endedAt, deadlineAt }: CallRow) =>
  kind === 'checks' && endedAt === null && deadlineAt !== null

const toParkedChecks = ({ branch, deadlineAt, checks }: CallRow) => ({
  branch: branch ?? '',
  deadlineAt: toTimestamp(deadlineAt ?? 0),
  checks: checks ?? [],
})

const toParked = ({ id, prompt, options, createdAt }: QuestionRow) => ({
  id,
  prompt,
  options,
  askedAt: toTimestamp(createdAt),
})

export const presentStarted = (run: WorkflowRunRow): StartedWorkflowRun => ({ ...runFields(run), taskId: run.taskId })

/** Shows runs with their steps; all are of the caller's workspace. */
export async function presentWorkflowRuns(
  db: Db,
  caller: Caller,
  rows: readonly WorkflowRunRow[],
): Promise<WorkflowRun[]> {
  const ids = rows.map(({ id }) => id)
  // First: a program that waits at a question is shown with all the steps that led it there.
  const questions = await listOpenQuestions(db, 'workflow_run_id', ids)
  const calls = await listCallsOf(db, ids)
  const runs = await listRunsOfSteps(db, ids)
  const visibleTo = workViewerOf(caller)
  const visible = visibleTo === undefined ? runs : await listRunsOfSteps(db, ids, visibleTo)
  const seen = new Set(visible.map(({ id }) => id))
  const runIds = runs.map(({ id }) => id)
  const approvals = await listHoldingApprovals(db, 'run_id', { ids: runIds, triggers: ['tool_permission'] })
  const agents = await visibleAgents(
    db,
    caller,
    [...calls, ...questions].map(({ agentRef }) => agentRef),
  )
  const taskIds = [...new Set(rows.flatMap(({ taskId }) => taskId ?? []))]
  const tasks = await visibleTasks(db, caller, await listTasksByIds(db, caller.workspaceId, taskIds))
  const callsOf = Map.groupBy(calls, ({ workflowRunId }) => workflowRunId)
  const runsOf = Map.groupBy(runs, ({ workflowRunId, workflowCall }) => stepKey(workflowRunId, workflowCall))
  const titles = new Map(tasks.map(({ id, title }) => [id, title]))
  return rows.map((row) => {
    const title = row.taskId === null ? undefined : titles.get(row.taskId)
    return {
      // The oldest that the caller sees.
      ...runFields(
        row,
        questions.find(({ workflowRunId, agentRef }) => workflowRunId === row.id && agents.has(agentRef)),
        row.completedAt === null ? callsOf.get(row.id)?.find(isOpenChecks) : undefined,
      ),
      task: row.taskId === null || title === undefined ? null : { id: row.taskId, title },
      steps: (callsOf.get(row.id) ?? [])
        .filter(({ stepOrdinal }) => stepOrdinal !== null)
        .map((call) => toStep(call, { runs: runsOf.get(stepKey(row.id, call.seq)) ?? [], seen, agents, approvals })),
    }
  })
}

const stepKey = (workflowRunId: WorkflowRunId | null, call: number | null) => `${workflowRunId} ${call}`

function toStep(
  call: CallRow,
  {
    runs,
    seen,
    agents,
    approvals,
  }: {
    runs: readonly RunRow[]
    /** Ids of the runs that the caller sees. */
    seen: ReadonlySet<RunId>
    agents: Agents
    approvals: readonly ApprovalRow[]
  },
): WorkflowStep {
  const agent = (call.agentRef === null ? null : agents.get(call.agentRef)) ?? null
  // Whoever does not see the agent or its task sees none of these runs, nor what they ask and did.
  const isSeen = agent !== null && runs.every(({ id }) => seen.has(id))
  const run = isSeen ? runs.at(-1) : undefined
  const pending = approvals.find(({ runId }) => run !== undefined && runId === run.id)
  const { label, phase } = shownArgs(call.args)
  return {
    stepOrdinal: call.stepOrdinal ?? 0,
    state: stepStateOf(call),
    label,
    phase,
    run: run === undefined ? null : toStepRun(run),
    // A step without an agent has an error in which nothing private is told.
    error: isSeen || call.agentRef === null ? errorOf(call) : null,
    agent,
    resumeAttempts: call.resumeAttempts,
    pendingApproval: pending === undefined ? null : { id: pending.id, prompt: pending.prompt },
    gate: call.kind === 'gate' ? toCommand(call, isSeen) : null,
    dispatchedAt: toTimestamp(call.dispatchedAt),
    advancedAt: toTimestamp(call.advancedAt),
  }
}

const storedFailure = z.object({ code: z.string(), message: z.string() })

const errorOf = ({ isValue, result }: CallRow): WorkflowStep['error'] =>
  isValue === false && result !== null ? storedFailure.parse(JSON.parse(result)) : null

const commandArgs = z.object({ argv: z.array(z.string()) })
const commandValue = z.object({ exitCode: z.number().nullable(), output: z.string(), ranArgv: z.array(z.string()) })

/** Shows a command step; what the command did is told when the program has it. */
function toCommand({ args, result, isValue, ranIn }: CallRow, isSeen: boolean): NonNullable<WorkflowStep['gate']> {
  const { argv } = commandArgs.parse(JSON.parse(args))
  if (!isSeen || isValue !== true || result === null)
    return { argv, exitCode: null, output: null, cwd: null, ranArgv: null }
  return { argv, ...commandValue.parse(JSON.parse(result)), cwd: ranIn }
}

const toStepRun = ({ id, status, errorMessage: error, exitReason }: RunRow) => ({ id, status, error, exitReason })

function shownArgs(args: string): { label: string | null; phase: string | null } {
  const { label = null, phase = null } = JSON.parse(args) as { label?: string | null; phase?: string | null }
  return { label, phase }
}
