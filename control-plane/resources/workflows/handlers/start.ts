import { publicIdOf } from '../../../http/callers.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { workflowRoutes } from '../../../../shared/api/workflows.ts'
import { answer, type HandlerInput } from '../../../http/implement.ts'
import { causeOfCaller } from '../../runs/cause.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import type { BuiltIn } from '../../../workflows/catalog/catalog.ts'
import { readInputs } from '../own/inputs.ts'
import { presentStarted } from '../own/present.ts'
import { beginWorkflowRun, programOf } from '../steps/begin.ts'
import { findWorkflow } from '../store.ts'

/** Starts a run of a workflow: its program runs once this is committed, and starts its first steps. */
export async function startWorkflow(
  { db, caller, body, world }: HandlerInput<typeof workflowRoutes.start>,
  { engine, builtIn }: Pick<ResourceDependencies, 'engine'> & { builtIn: BuiltIn | null },
) {
  const workflow =
    (await findWorkflow(db, caller.workspaceId, body.workflow)) ??
    (builtIn && programOf(builtIn, caller.workspaceId)) ??
    fail('resource_not_found', { param: 'workflow', message: 'There is no workflow with this name in this workspace.' })
  if (workflow.retiredAt !== null)
    fail('validation_error', { param: 'workflow', message: `The workflow ${workflow.name} is retired.` })
  if (engine === null) fail('workflows_not_configured')
  const { input, task } = await readInputs(db, caller, {
    declared: workflow.inputs,
    given: body.input ?? {},
    taskId: body.taskId ?? null,
  })
  const begin = {
    workflow,
    input,
    taskId: task?.id ?? null,
    toolPermissionMode: body.toolPermissionMode ?? null,
    startedByRef: publicIdOf(caller),
    causedByUuid: await causeOfCaller(db, caller),
  }
  return answer(201, presentStarted(await beginWorkflowRun(db, begin, world)))
}
