import type { RunId } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import type { JsonSchemas } from '../../../shared/api/agent-runs.ts'
import { runSpec, type RunSpec } from '../../../shared/runs/spec.ts'
import type { TriedAct } from '../../../shared/runs/wall-acts.ts'
import { json, text } from '../../db/columns.ts'
import { runId } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { query } from '../../db/statement.ts'
import { details, type RunDetails } from './details-table.ts'

const byRun = details.query('where run_id = ?')

export async function findDetails(db: Db, runId: RunId): Promise<RunDetails | null> {
  return byRun.first(db, [runId])
}

const specs = query(
  'select run_id, spec from run_details where run_id in ?',
  z.object({ run_id: runId, spec: json(runSpec) }).transform((r) => [r.run_id, r.spec] as const),
)

/** The specs that these runs are started with, by run. */
export async function listSpecs(db: Db, runIds: readonly RunId[]): Promise<Map<RunId, RunSpec>> {
  return new Map(await specs.list(db, [runIds]))
}

const promptStarts = query(
  'select run_id, substr(prompt, 1, ?) as start from run_details where run_id in ? and prompt is not null',
  z.object({ run_id: runId, start: text }).transform((r) => [r.run_id, r.start] as const),
)

/** So many characters from the beginning of the prompts of these runs, by run. */
export async function listPromptStarts(db: Db, runIds: readonly RunId[], chars: number): Promise<Map<RunId, string>> {
  return new Map(await promptStarts.list(db, [chars, runIds]))
}

/** Sets the run's typed output; a later one replaces it. */
export async function replaceOutput(
  db: Db,
  output: { runId: RunId; schema: string | null; value: unknown; at: number },
): Promise<void> {
  const { runId, schema: outputSchema, value, at: outputAt } = output
  await details.update(db, { runId }, { output: value, outputSchema, outputAt })
}

/** Sets the schemas that the run's output may name. */
export async function replaceOutputSchemas(db: Db, runId: RunId, schemas: JsonSchemas): Promise<void> {
  await details.update(db, { runId }, { outputSchemas: schemas })
}

/** Sets the spec of a run that no device was given yet. */
export async function replaceSpec(db: Db, runId: RunId, spec: RunSpec): Promise<void> {
  await details.update(db, { runId }, { spec })
}

/** Records what was tried of the wall around the run. The first report stays: it is from before the run could have a part in it. */
export async function recordWall(db: Db, runId: RunId, wall: TriedAct[]): Promise<void> {
  await details.update(db, { runId, wall: null }, { wall })
}
