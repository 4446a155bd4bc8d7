import type { Tx } from '../../db/open.ts'
import { isBound } from '../../resources/repos/binding-store.ts'
import { readRemote } from '../../resources/repos/rules.ts'
import { findRepo } from '../../resources/repos/store.ts'
import { findTaskById } from '../../resources/tasks/store.ts'
import { insertCall } from '../../resources/workflows/call-store.ts'
import type { WorkflowRunRow } from '../../resources/workflows/run-store.ts'
import { findLastRunOfSteps } from '../../resources/workflows/step-store.ts'
import { callArgs, type AskArgs, type ChecksArgs } from '../engine/args.ts'
import { askPerson, type WorkflowQuestion } from './ask.ts'
import { refuseCall, rowOf, type NewCall, type Surroundings } from './new-call.ts'
import { failed, type StepOutcome } from './outcome.ts'

// The waits of a program that need no run: for the answer of a person, and for the checks of a pull request.

export async function dispatchAsk(tx: Tx, call: NewCall, of: Surroundings): Promise<void> {
  const { seq, args: text } = call
  const { run, context } = of
  const { world } = context
  const now = world.now()
  const about = await findLastRunOfSteps(tx, run.id)
  const row = rowOf(call, run, { agentRef: null, at: now })
  if (about === null) {
    await insertCall(tx, row)
    const message = 'A workflow asks after its first step: a question is about a run.'
    return refuseCall(tx, run, { seq, at: now, refusal: failed({ code: 'ask_before_step', message }) })
  }
  const args = callArgs.ask.parse(JSON.parse(text))
  const questionId = await askPerson(tx, run, { ...questionOf(args), call: seq, about, world })
  await insertCall(tx, { ...row, questionId })
}

function questionOf({
  prompt,
  options = null,
  multiple,
}: AskArgs): Pick<WorkflowQuestion, 'prompt' | 'answerMode' | 'options'> {
  if (options === null) return { prompt, answerMode: 'free_text', options }
  return {
    prompt,
    answerMode: multiple === true ? 'multi_select' : 'single_select',
    options: options.map((option) => (typeof option === 'string' ? { key: option, label: option } : option)),
  }
}

export async function dispatchChecks(tx: Tx, call: NewCall, of: Surroundings): Promise<void> {
  const { seq, args: text } = call
  const { run, context, readsChecks } = of
  const now = context.world.now()
  const args = callArgs.checks.parse(JSON.parse(text))
  const row = rowOf(call, run, { agentRef: null, at: now })
  const place = readsChecks
    ? await placeOfChecks(tx, run, args)
    : failed({ code: 'github_not_installed', message: 'This server is not connected to GitHub.' })
  if ('isValue' in place) {
    await insertCall(tx, row)
    return refuseCall(tx, run, { seq, at: now, refusal: place })
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
