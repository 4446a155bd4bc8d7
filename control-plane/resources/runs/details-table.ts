import { z } from 'zod'
import { runSpec } from '../../../shared/runs/spec.ts'
import { triedActs } from '../../../shared/runs/wall-acts.ts'
import { json, nullableJson, nullableText, nullableTime } from '../../db/columns.ts'
import { runId } from '../../db/id-columns.ts'
import { table, type RowOf } from '../../db/table.ts'

/** The instructions of a run, kept apart from its row because they are large and seldom read. */
export const details = table('run_details', {
  runId,
  prompt: nullableText,
  spec: json(runSpec),
  fallbackSpec: nullableJson(runSpec),
  manifest: nullableJson(z.record(z.string(), z.unknown())),
  output: nullableJson(z.unknown()),
  outputSchema: nullableText,
  outputAt: nullableTime,
  outputSchemas: nullableJson(z.record(z.string(), z.record(z.string(), z.unknown()))),
  /** The acts that were tried of the wall around the run; null: nobody told. */
  wall: nullableJson(triedActs),
})
export type RunDetails = RowOf<typeof details>

/** `insertRun` writes them with the run. */
export const detailsInsert = details.inserter(['runId', 'prompt', 'spec', 'fallbackSpec', 'manifest'])
export type NewDetails = Pick<RunDetails, 'prompt' | 'spec' | 'fallbackSpec' | 'manifest'>
