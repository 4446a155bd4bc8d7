import { z } from 'zod'
import type { JsonSchemas } from '../../../shared/api/agent-runs.ts'
import { runSpec, type RunSpec } from '../../../shared/runs/spec.ts'
import { json, nullableJson, nullableText, nullableTime, text, toJson, toNullableJson } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { columnsOf, command, query } from '../../db/statement.ts'

/** What a run was told to do, apart from its row because it is large and seldom read. */
const row = z
  .object({
    run_id: text,
    prompt: nullableText,
    spec: json(runSpec),
    manifest: nullableJson(z.record(z.string(), z.unknown())),
    output: nullableJson(z.unknown()),
    output_schema: nullableText,
    output_at: nullableTime,
    output_schemas: nullableJson(z.record(z.string(), z.record(z.string(), z.unknown()))),
  })
  .transform((r) => ({
    runId: r.run_id,
    prompt: r.prompt,
    spec: r.spec,
    manifest: r.manifest,
    output: r.output,
    outputSchema: r.output_schema,
    outputAt: r.output_at,
    outputSchemas: r.output_schemas ?? {},
  }))
export type RunDetails = z.infer<typeof row>

const insert = command('insert into run_details (run_id, prompt, spec, manifest) values (?, ?, ?, ?)')

export async function insertDetails(
  db: Db,
  details: { runId: string; prompt: string | null; spec: RunSpec; manifest: Record<string, unknown> | null },
): Promise<void> {
  const { runId, prompt, spec, manifest } = details
  await insert(db, [runId, prompt, toJson(spec), toNullableJson(manifest)])
}

const byRun = query(`select ${columnsOf(row)} from run_details where run_id = ?`, row)

export async function findDetails(db: Db, runId: string): Promise<RunDetails | null> {
  return byRun.first(db, [runId])
}

const specs = query(
  'select run_id, spec from run_details where run_id in ?',
  z.object({ run_id: text, spec: json(runSpec) }).transform((r) => [r.run_id, r.spec] as const),
)

/** What these runs are started with, by run. */
export async function listSpecs(db: Db, runIds: readonly string[]): Promise<Map<string, RunSpec>> {
  return new Map(await specs.list(db, [runIds]))
}

/** Sets the run's typed output; a later one replaces it. */
export async function replaceOutput(
  db: Db,
  output: { runId: string; schema: string | null; value: unknown; at: number },
): Promise<void> {
  await db('run_details')
    .where({ run_id: output.runId })
    .update({ output: toJson(output.value), output_schema: output.schema, output_at: output.at })
}

/** Sets the schemas that the run's output may name. */
export async function replaceOutputSchemas(db: Db, runId: string, schemas: JsonSchemas): Promise<void> {
  await db('run_details')
    .where({ run_id: runId })
    .update({ output_schemas: toJson(schemas) })
}

/** For a run that no device was given yet. */
export async function replaceSpec(db: Db, runId: string, spec: RunSpec): Promise<void> {
  await db('run_details')
    .where({ run_id: runId })
    .update({ spec: toJson(spec) })
}
