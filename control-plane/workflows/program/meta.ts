import { z } from 'zod'
import { isStorable } from '../../../shared/lib/storable.ts'
import { inputKinds, toolModes, workflowName } from '../../../shared/api/workflow-words.ts'

// The facts that a program states about itself in `export const meta`.

/** A program may write out what no body of a request holds. */
const text = z.string().refine(isStorable, 'a zero byte or an unpaired surrogate')

const input = z.strictObject({
  key: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, '1 to 64 letters, digits and underscores'),
  label: text.trim().min(1).max(200).optional(),
  kind: z.enum(inputKinds).default('text'),
  required: z.boolean().default(false),
})

export const programMeta = z.strictObject({
  name: workflowName,
  title: text.trim().min(1).max(200),
  description: text.max(2_000).nullable().default(null),
  inputs: z
    .array(input.transform((given) => ({ ...given, label: given.label ?? given.key })))
    .max(32, 'at most 32 inputs')
    .refine((inputs) => new Set(inputs.map(({ key }) => key)).size === inputs.length, 'two inputs have the same key')
    .default([]),
  toolPermissionMode: z.enum(toolModes).default('ask'),
})
export type ProgramMeta = z.output<typeof programMeta>
