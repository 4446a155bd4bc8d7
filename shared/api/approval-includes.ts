import { z } from 'zod'
import { runId, taskId } from './ids.ts'
import { run } from './runs.ts'
import { taskStatuses } from './task-fields.ts'

/** Records that `include` adds to an approval or a question. */
export const includedTask = z
  .object({ object: z.literal('task'), id: taskId, key: z.string(), title: z.string(), status: z.enum(taskStatuses) })
  .meta({ id: 'IncludedTask' })
  .nullable()
export const includedSession = z
  .object({ object: z.literal('session'), id: z.string(), harness: z.string(), runId })
  .meta({ id: 'IncludedSession' })
  .nullable()
  .describe('The harness session in which it was asked.')
export const included = {
  task: includedTask.optional().describe('With `include[]=task`.'),
  run: run.nullable().optional().describe('With `include[]=run`.'),
  session: includedSession.optional().describe('With `include[]=session`.'),
}

/** The most text that is shown of one staged file, and of all of one change. */
export const stagedTextLimits = { fileBytes: 262_144, bytes: 2_097_152 } as const
const stagedFile = z.object({
  path: z.string().describe('Below the folder of its skill or plugin, whose name comes first.'),
  sizeBytes: z.number().int(),
  sha256: z.string(),
  executable: z.boolean(),
  content: z
    .string()
    .nullable()
    .describe('Its text; null: it is no text, there is too much before it, or it cannot be read now.'),
  truncated: z.boolean().describe('The text goes on, or is left out.'),
})
export const staged = {
  files: z
    .array(stagedFile)
    .nullable()
    .optional()
    .describe(
      'With `include[]=files`: those of skills and of a plugin that approving would install; null for those who cannot approve.',
    ),
}
