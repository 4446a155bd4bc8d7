import { z } from 'zod'
import { reasoningEfforts } from '../../../shared/runs/spec.ts'
import type { CallKind } from './words.ts'

/** The arguments that the calls of a program take. A call that does not fit rejects, and is not made. */

const shown = z.string().max(200)
const ref = z.string().min(1).max(200)

const agent = z.strictObject({
  prompt: z.string().min(1).max(100_000),
  label: shown.nullish(),
  phase: shown.nullish(),
  agent: ref.nullish(),
  task: z.null().optional(),
  schema: z.record(z.string(), z.unknown()).nullish(),
  model: z.string().min(1).max(200).nullish(),
  effort: z.enum(reasoningEfforts).nullish(),
  continues: shown.min(1).nullish(),
})
export type AgentArgs = z.output<typeof agent>

const option = z.union([
  z.string().min(1).max(200),
  z.strictObject({ key: z.string().min(1).max(100), label: z.string().min(1).max(500) }),
])
const ask = z
  .strictObject({
    prompt: z.string().min(1).max(10_000),
    options: z.array(option).min(1).max(50).nullish(),
    multiple: z.boolean().nullish(),
  })
  .refine(
    ({ options }) => new Set(options?.map(keyOf)).size === (options?.length ?? 0),
    'two options have the same key',
  )
export type AskArgs = z.output<typeof ask>
export const keyOf = (of: z.output<typeof option>): string => (typeof of === 'string' ? of : of.key)

const checks = z.strictObject({
  branch: z.string().min(1).max(255).nullish(),
  repo: z
    .string()
    .regex(/^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38})\/[A-Za-z0-9._-]{1,100}$/, 'owner/name')
    .nullish(),
  deadlineMinutes: z
    .number()
    .min(1)
    .max(7 * 24 * 60)
    .nullish(),
})
export type ChecksArgs = z.output<typeof checks>

export const callArgs = { agent, ask, checks } as const satisfies Record<CallKind, z.ZodType>

/** Why these arguments are none of this call; null when they are. */
export function misfitOfCall(kind: CallKind, args: unknown): string | null {
  const parsed = callArgs[kind].safeParse(args)
  if (parsed.success) return null
  const [issue] = parsed.error.issues
  const path = (issue?.path ?? []).map(String).join('.')
  return `${kind}: ${path === '' ? '' : `${path}: `}${issue?.message ?? 'invalid arguments'}.`
}
