import type { Tx } from '../../db/open.ts'
import { isVisible } from '../../resources/agents/rules.ts'
import { findAgent, listAgentsByReferences, matchReference, type AgentRow } from '../../resources/agents/store.ts'
import { isBound } from '../../resources/repos/binding-store.ts'
import { readRemote } from '../../resources/repos/rules.ts'
import { findRepo } from '../../resources/repos/store.ts'
import { addOutputSchemas } from '../../resources/runs/steps/add-schemas.ts'
import type { RunRow } from '../../resources/runs/store.ts'
import { taskPrompt } from '../../resources/tasks/prompt.ts'
import { findTaskById, type TaskRow } from '../../resources/tasks/store.ts'
import { endCall, insertCall, type CallRow } from '../../resources/workflows/call-store.ts'
import type { WorkflowRunRow } from '../../resources/workflows/run-store.ts'
import { listRunsOfSteps } from '../../resources/workflows/step-store.ts'
import { publishChange } from '../../resources/workflows/notify.ts'
import { startRun } from '../../wakes/start-run.ts'
import type { Wake, WakeAnswer, WakeContext } from '../../wakes/wake.ts'
import { callArgs, type AgentArgs, type AskArgs, type ChecksArgs } from '../engine/args.ts'
import type { ProgramCall } from '../engine/words.ts'
import { askPerson, type Asked } from './ask.ts'
import { failed, outputName, type StepOutcome } from './outcome.ts'

/** A call that the program made just now, with its number, and the number of the step that it is. */
export interface NewCall extends ProgramCall {
  seq: number
  /** null: it is no step. */
  stepOrdinal: number | null
  /** Why it cannot be done, if that is known already. */
  refusal: StepOutcome | null
}

interface Surroundings {
  run: WorkflowRunRow
  /** The calls before it. */
  calls: readonly Pick<CallRow, 'seq' | 'kind' | 'args'>[]
  context: WakeContext
  readsChecks: boolean
}

/** Writes the call down and does what it asks for, in one transaction. What cannot be done has failed at once. */
export async function dispatchCall(tx: Tx, call: NewCall, surroundings: Surroundings): Promise<void> {
  if (call.kind === 'ask') return dispatchAsk(tx, call, surroundings)
  return call.kind === 'checks' ? dispatchChecks(tx, call, surroundings) : dispatchStep(tx, call, surroundings)
}

async function dispatchAsk(tx: Tx, { seq, kind, args: text, digest }: NewCall, of: Surroundings): Promise<void> {
  const { run, context } = of
  const { world } = context
  const now = world.now()
  const about = (await listRunsOfSteps(tx, [run.id])).at(-1)
  const row = {
    workflowRunId: run.id,
    seq,
    stepOrdinal: null,
    kind,
    args: text,
    digest,
    agentId: null,
    dispatchedAt: now,
  }
  if (about === undefined) {
    await insertCall(tx, row)
    const message = 'A workflow asks after its first step: a question is about a run.'
    return refuse(tx, run, { seq, at: now, refusal: failed({ code: 'ask_before_step', message }) })
  }
  const args = callArgs.ask.parse(JSON.parse(text))
  const questionId = await askPerson(tx, run, { ...questionOf(args), call: seq, about, world })
  await insertCall(tx, { ...row, questionId })
}

function questionOf({ prompt, options = null, multiple }: AskArgs): Pick<Asked, 'prompt' | 'answerMode' | 'options'> {
  if (options === null) return { prompt, answerMode: 'free_text', options }
  return {
    prompt,
    answerMode: multiple === true ? 'multi_select' : 'single_select',
    options: options.map((option) => (typeof option === 'string' ? { key: option, label: option } : option)),
  }
}

async function dispatchChecks(tx: Tx, { seq, kind, args: text, digest }: NewCall, of: Surroundings): Promise<void> {
  const { run, context, readsChecks } = of
  const now = context.world.now()
  const args = callArgs.checks.parse(JSON.parse(text))
  const row = {
    workflowRunId: run.id,
    seq,
    stepOrdinal: null,
    kind,
    args: text,
    digest,
    agentId: null,
    dispatchedAt: now,
  }
  const place = readsChecks
    ? await placeOfChecks(tx, run, args)
    : failed({ code: 'github_not_installed', message: 'This server is not connected to GitHub.' })
  if ('isValue' in place) {
    await insertCall(tx, row)
    return refuse(tx, run, { seq, at: now, refusal: place })
  }
  await insertCall(tx, { ...row, ...place, deadlineAt: now + (args.deadlineMinutes ?? 60) * 60_000 })
}

/** The repository and branch whose checks are meant: those of the task, unless the program says otherwise. */
async function placeOfChecks(
  tx: Tx,
  { taskId, workspaceId }: WorkflowRunRow,
  args: ChecksArgs,
): Promise<{ repo: string; branch: string } | StepOutcome> {
  const task = taskId === null ? null : await findTaskById(tx, taskId)
  const branch = args.branch ?? task?.branchName ?? null
  if (branch === null) return failed({ code: 'branch_missing', message: 'Say which branch: the task has none.' })
  const known = args.repo == null && task?.repoId != null ? await findRepo(tx, workspaceId, task.repoId) : null
  const repo = args.repo?.toLowerCase() ?? (known === null ? null : (readRemote(known.gitRemote)?.name ?? null))
  if (repo === null) return failed({ code: 'repo_missing', message: 'Say which repository: the task has none.' })
  if (await isBound(tx, workspaceId, repo)) return { repo, branch }
  return failed({ code: 'repo_not_found', message: `The repository ${repo} is not bound to this workspace.` })
}

async function refuse(
  tx: Tx,
  run: WorkflowRunRow,
  { seq, at, refusal }: { seq: number; at: number; refusal: StepOutcome },
): Promise<void> {
  await endCall(tx, { workflowRunId: run.id, seq }, { at, isValue: false, result: refusal.text })
  await publishChange(tx, run, at)
}

async function dispatchStep(tx: Tx, call: NewCall, { run, calls, context }: Surroundings): Promise<void> {
  const { world } = context
  const now = world.now()
  const args = callArgs.agent.parse(JSON.parse(call.args))
  const task = args.task === null || run.taskId === null ? null : await findTaskById(tx, run.taskId)
  const agent = await agentFor(tx, run, { named: args.agent ?? null, task })
  const { seq, stepOrdinal, kind, digest } = call
  const row = { workflowRunId: run.id, seq, stepOrdinal, kind, args: call.args, digest }
  await insertCall(tx, { ...row, agentId: agent?.id ?? null, dispatchedAt: now })
  const refusal = call.refusal ?? (await start(tx, { args, seq, task, agent, run, calls, context }))
  if (refusal !== null) await refuse(tx, run, { seq, at: now, refusal })
}

async function start(
  tx: Tx,
  step: Omit<Surroundings, 'readsChecks'> & {
    args: AgentArgs
    seq: number
    task: TaskRow | null
    agent: AgentRow | null
  },
): Promise<StepOutcome | null> {
  const { args, agent, task, run, seq, context } = step
  if (agent === null) return failed(noAgent(args.agent ?? null))
  const continued = args.continues == null ? null : await continuedBy(tx, args.continues, step)
  if (continued === 'unknown') {
    const message = `No earlier step is labelled "${args.continues}".`
    return failed({ code: 'unknown_label', message })
  }
  if (continued !== null && continued.endedAt === null) {
    const message = `The step "${args.continues}" still works; its session cannot be gone on with yet.`
    return failed({ code: 'step_at_work', message })
  }
  const wake: Wake = {
    agent,
    triggerSource: 'workflow_step',
    requestedBy: run.startedBy,
    causedBy: run.causedByUserId,
    prompt: promptOf(args, task),
    parent: continued,
    task,
    ...(continued === null && { freshSince: context.world.now() }),
    overrides: { model: args.model ?? null, reasoningEffort: args.effort ?? null, toolMode: run.toolPermissionMode },
    step: { workflowRunId: run.id, call: seq },
  }
  const answer = await startRun(tx, wake, context)
  if (answer.kind === 'not_dispatched') return refusalOf(answer)
  if (args.schema != null && answer.kind !== 'declined')
    await addOutputSchemas(tx, answer.runId, { [outputName]: args.schema })
  return null
}

export const refusalOf = ({ reason, message }: WakeAnswer & { kind: 'not_dispatched' }): StepOutcome =>
  failed({ code: reason, message })

const noAgent = (named: string | null) =>
  named === null
    ? { code: 'no_agent', message: 'No agent is there for this step: name one, or start the workflow with a task.' }
    : { code: 'agent_not_found', message: `There is no agent ${named} that this workflow can see.` }

/** The one that is named, else that of the workflow run, else the one to which the task is assigned. */
async function agentFor(
  tx: Tx,
  run: WorkflowRunRow,
  { named, task }: { named: string | null; task: TaskRow | null },
): Promise<AgentRow | null> {
  const own = run.agentId ?? task?.assigneeAgentId ?? null
  if (named === null || named === 'me') return own === null ? null : findAgent(tx, own)
  // Private agents are those of the person behind it, the one that started it, and its own.
  const starter = run.startedBy?.startsWith('agt_') === true ? run.startedBy : null
  const known = (await listAgentsByReferences(tx, run.workspaceId, [named])).filter(
    (agent) =>
      agent.id === run.agentId ||
      agent.id === starter ||
      isVisible(agent, { seesAll: false, userId: run.causedByUserId, agentId: null }),
  )
  return matchReference(known, named)
}

/** The last run of the latest earlier step with this label. */
async function continuedBy(
  tx: Tx,
  label: string,
  { run, calls, seq }: Omit<Surroundings, 'readsChecks'> & { seq: number },
): Promise<RunRow | 'unknown'> {
  const earlier = calls.findLast((call) => call.kind === 'agent' && call.seq < seq && labelOf(call.args) === label)
  if (earlier === undefined) return 'unknown'
  const runs = await listRunsOfSteps(tx, [run.id])
  return runs.findLast(({ workflowCall }) => workflowCall === earlier.seq) ?? 'unknown'
}

const labelOf = (args: string): unknown => (JSON.parse(args) as { label?: unknown }).label

function promptOf({ prompt, schema }: AgentArgs, task: TaskRow | null): string {
  const asked = task === null ? prompt : taskPrompt(task, { reason: prompt })
  if (schema == null) return asked
  return `${asked}

When you are done, record your result as JSON that fits the schema below: \`svc run output --schema ${outputName} --data '...'\` (or \`--file result.json\`). Only what is recorded so counts.

${JSON.stringify(schema)}`
}
