import type { JsonSchemas } from '../../../shared/api/agent-runs.ts'
import { fail } from '../../../shared/api/errors.ts'
import type { CostlyPool } from '../../costly/pool.ts'
import type { JobAnswer } from '../../process/worker-pool.ts'
import type { Db } from '../../db/open.ts'
import { callerKey, type Caller } from '../../http/callers.ts'
import { findDetails } from './details-store.ts'
import type { Misfit } from './json-schemas.ts'
import { findRun, type RunRow } from './store.ts'

// The JSON Schemas that a run's typed output may name. Whoever starts a run gives them
// with it; a run that continues another one knows that one's too. Schemas come from callers, so workers check them.

/** Runs that continue one another, looked through for a schema. */
const maxAncestors = 50

export interface SchemaCheck {
  costly: Pick<CostlyPool, 'run'>
  caller: Caller
}

/** Fails with `validation_error` when one of them is not a schema. */
export async function checkSchemas(schemas: JsonSchemas, { costly, caller }: SchemaCheck): Promise<void> {
  const text = JSON.stringify(schemas)
  const answer = await costly.run('schemas.check', text, ownerOf(caller, text))
  const flaw =
    answer.kind === 'done' ? answer.value : { name: Object.keys(schemas)[0] ?? '', message: sentenceOf(answer) }
  if (flaw === null) return
  const path = `outputSchemas.${flaw.name}`
  fail('validation_error', { param: path, details: { fields: [{ path, message: flaw.message }] } })
}

/** Returns why the data does not fit the schema; null: it does. */
export async function schemaMisfitOf(
  schema: JsonSchemas[string],
  data: unknown,
  { costly, caller }: SchemaCheck,
): Promise<Misfit | null> {
  const text = JSON.stringify({ schema, data })
  const answer = await costly.run('schemas.misfit', text, ownerOf(caller, text))
  return answer.kind === 'done' ? answer.value : { path: 'data', message: sentenceOf(answer) }
}

const ownerOf = (caller: Caller, text: string) => ({
  workspaceId: caller.workspaceId,
  caller: callerKey(caller),
  bytes: text.length,
})

const sentences = {
  time: 'The schema takes too long to check.',
  memory: 'The schema takes too much memory to check.',
  crash: 'The schema cannot be checked.',
} as const
const sentenceOf = ({ why }: JobAnswer<never> & { kind: 'gave_up' }) => sentences[why]

/** Returns all schemas that the run's output may name; the run's own come before those of the runs it continues. */
export async function listOutputSchemas(db: Db, run: RunRow): Promise<JsonSchemas> {
  let found: JsonSchemas = {}
  for await (const each of withAncestors(db, run))
    found = { ...(await findDetails(db, each.id))?.outputSchemas, ...found }
  return found
}

/** The name of the schema of a workflow's step, of which there is one. */
export const stepSchema = 'output'

/**
 * Returns the name of the schema that an output must fit which names none: only a step of a workflow that asks for an output has
 * one, also where its run was woken anew. null: any JSON is taken.
 */
export async function unnamedSchemaOf(db: Db, run: RunRow): Promise<string | null> {
  if (run.workflowCall === null) return null
  for await (const { id, workflowRunId, workflowCall } of withAncestors(db, run)) {
    if (workflowRunId !== run.workflowRunId || workflowCall !== run.workflowCall) return null
    if (Object.hasOwn((await findDetails(db, id))?.outputSchemas ?? {}, stepSchema)) return stepSchema
  }
  return null
}

/** The run and those that it continues, the newest first. */
async function* withAncestors(db: Db, run: RunRow): AsyncGenerator<RunRow> {
  let at: RunRow | null = run
  for (let count = 0; at !== null && count < maxAncestors; count++) {
    yield at
    at = at.parentRunId === null ? null : await findRun(db, at.parentRunId)
  }
}
