import type { TaskId, WorkflowRunId } from '../../../../../shared/lib/ids.ts'
import type { Tx } from '../../../../db/open.ts'
import type { WakeContext } from '../../../../run/wakes/wake.ts'
import { findTaskById } from '../../../tasks/store.ts'
import { readInput } from '../../../workflows/rules.ts'
import { beginWorkflowRun, programOf, type StartedProgram } from '../../../workflows/steps/begin.ts'
import { findWorkflow } from '../../../workflows/store.ts'
import type { AutomationRow } from '../../store.ts'

/** The inputs that an event of git brings to a workflow, by their names; the workflow gets those that it declares. */
export interface EventInputs {
  repo: string
  number: number
  url: string
  title: string
  branch: string
  base: string
  headSha: string
  /** `tsk_` id of the task that the pull request is about. */
  taskRef: TaskId | null
}

export type WorkflowFire =
  | { kind: 'started'; workflowRunId: WorkflowRunId }
  | { kind: 'unavailable'; message: string }
  | { kind: 'unfit'; message: string }

/** Starts the workflow of an automation, in the name of its agent. */
export async function fireWorkflow(
  tx: Tx,
  { automation, name, event }: { automation: AutomationRow; name: string; event: EventInputs | null },
  { world, runsWorkflows, builtInWorkflows }: Pick<WakeContext, 'world' | 'runsWorkflows' | 'builtInWorkflows'>,
): Promise<WorkflowFire> {
  const builtIn = builtInWorkflows().find(({ meta }) => meta.name === name)
  const workflow =
    (await findWorkflow(tx, automation.workspaceId, name)) ??
    (builtIn === undefined ? null : programOf(builtIn, automation.workspaceId))
  const trouble = !runsWorkflows
    ? `This server runs no workflows, so ${name} was not started.`
    : workflow === null
      ? `There is no workflow ${name} in this workspace.`
      : workflow.retiredAt !== null
        ? `The workflow ${name} is retired.`
        : null
  if (workflow === null || trouble !== null) return { kind: 'unavailable', message: trouble ?? '' }
  const read = inputsOf(workflow, event)
  if ('message' in read) return { kind: 'unfit', message: read.message }
  const task = event?.taskRef == null ? null : await findTaskById(tx, event.taskRef)
  const begin = {
    workflow,
    input: read.input,
    taskId: task?.id ?? null,
    toolPermissionMode: null,
    startedByRef: automation.agentRef,
    // An automation that fires by itself is asked by nobody, so whoever set what it starts is responsible.
    causedByUuid: automation.causedByUuid,
  }
  return { kind: 'started', workflowRunId: (await beginWorkflowRun(tx, begin, world)).id }
}

function inputsOf(
  { name, inputs }: StartedProgram,
  event: EventInputs | null,
): { input: Record<string, unknown> } | { message: string } {
  const known: Readonly<Record<string, unknown>> = { ...event }
  const input: Record<string, unknown> = {}
  for (const declared of inputs) {
    const given = Object.hasOwn(known, declared.key) ? known[declared.key] : null
    // A number of an event may be declared as a text.
    const read = readInput(declared, declared.kind === 'text' && typeof given === 'number' ? String(given) : given)
    if ('message' in read) return { message: `The input ${read.key} of the workflow ${name} ${read.message}.` }
    input[declared.key] = read.value
  }
  return { input }
}
