import type { Tx } from '../../db/open.ts'
import { stepSchema } from '../../resources/runs/output-schemas.ts'
import { addOutputSchemas } from '../../resources/runs/steps/add-schemas.ts'
import type { RunRow } from '../../resources/runs/store.ts'
import { loadAuthors, type AuthorOf } from '../../resources/tasks/authors.ts'
import { taskPrompt } from '../../resources/tasks/present.ts'
import type { TaskRow } from '../../resources/tasks/store.ts'
import { listRunsOfCalls } from '../../resources/workflows/step-store.ts'
import type { Person } from '../../trust/rules.ts'
import { startRun } from '../../run/wakes/start-run.ts'
import type { ReadyWake } from '../../run/wakes/wake.ts'
import type { AgentArgs } from '../engine/args.ts'
import { askedByStep } from './asked.ts'
import type { StartedStep } from './new-call.ts'
import { failed, refusedWakeOutcome, type StepOutcome } from './outcome.ts'

/** Starts the run of an agent step; returns why it cannot be started. */
export async function startAgentStep(tx: Tx, args: AgentArgs, step: StartedStep): Promise<StepOutcome | null> {
  const { agent, workspace, task, run, seq, context } = step
  const parent = args.continues == null ? null : await continuedBy(tx, args.continues, step)
  if (parent === 'unknown') {
    const message = `No earlier step is labelled "${args.continues}".`
    return failed({ code: 'unknown_label', message })
  }
  if (parent !== null && parent.endedAt === null) {
    const message = `The step "${args.continues}" still works; its session cannot be gone on with yet.`
    return failed({ code: 'step_at_work', message })
  }
  const asked = await askedByStep(tx, step)
  const wake: ReadyWake = {
    ...asked,
    agent,
    workspace,
    requestedByRef: run.startedByRef,
    prompt: promptOf(
      args,
      task && { task, authorOf: await loadAuthors(tx, [task]), askedBy: asked.causedByUuid, stepOf: run.workflow },
    ),
    parent,
    task,
    ...(parent === null && { freshSince: context.world.now() }),
    overrides: { model: args.model ?? null, reasoningEffort: args.effort ?? null, toolMode: run.toolPermissionMode },
    step: { workflowRunId: run.id, call: seq },
  }
  const answer = await startRun(tx, wake, context)
  if (answer.kind === 'not_dispatched') return refusedWakeOutcome(answer)
  if (args.schema != null && answer.kind !== 'declined')
    await addOutputSchemas(tx, answer.runId, { [stepSchema]: args.schema })
  return null
}

/** The last run of the latest earlier step with this label. */
async function continuedBy(tx: Tx, label: string, { run, calls, seq }: StartedStep): Promise<RunRow | 'unknown'> {
  const earlier = calls.findLast((call) => call.kind === 'agent' && call.seq < seq && labelOf(call.args) === label)
  if (earlier === undefined) return 'unknown'
  const runs = await listRunsOfCalls(tx, { workflowRunId: run.id, seqs: [earlier.seq] })
  return runs.at(-1) ?? 'unknown'
}

const labelOf = (args: string): unknown => (JSON.parse(args) as { label?: unknown }).label

interface Work {
  task: TaskRow
  authorOf: AuthorOf
  askedBy: Person
  stepOf: string
}

function promptOf({ prompt, schema }: AgentArgs, work: Work | null): string {
  const asked = work === null ? prompt : taskPrompt(work.task, { ...work, reason: prompt })
  if (schema == null) return asked
  return `${asked}

When you are done, record your result as JSON that fits the schema below: \`svc run output --schema ${stepSchema} --data '...'\` (or \`--file result.json\`). Only what is recorded so counts.

${JSON.stringify(schema)}`
}
