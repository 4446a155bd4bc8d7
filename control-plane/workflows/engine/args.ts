import { z } from 'zod'
import { stepCommand, reasoningEfforts } from '../../../shared/runs/spec.ts'
import { asStorable } from '../../../shared/lib/storable.ts'
import type { CallKind } from './words.ts'

// The arguments that the calls of a program take. A call that does not fit rejects, and is not made.

/** Texts that come into the database or are looked up there: programs cut and build them out of anything. */
const text = z.string().overwrite(asStorable)
const shown = z.string().max(200)
const ref = text.min(1).max(200)

/** A step works on the task of its workflow run or on none: only that one was seen by whoever started the workflow. */
const ownTask = z
  .null('it can only be null. A step works on the task of its workflow run; start a workflow with the other task')
  .optional()

const agent = z.strictObject({
  prompt: text.min(1).max(100_000),
  label: shown.nullish(),
  phase: shown.nullish(),
  agent: ref.nullish(),
  task: ownTask,
  schema: z.record(z.string(), z.unknown()).nullish(),
  model: text.min(1).max(200).nullish(),
  effort: z.enum(reasoningEfforts).nullish(),
  continues: shown.min(1).nullish(),
})
export type AgentArgs = z.output<typeof agent>

/** A person who is asked sees all of it, and the list of steps shows it. */
const argvChars = 16_384

const command = z.strictObject({
  argv: stepCommand.shape.argv
    .refine(([program]) => program?.trim() !== '', 'the program is missing')
    .refine((argv) => argv.every((word) => !word.includes('\0')), 'a word holds a zero byte')
    .refine((argv) => argv.join(' ').length <= argvChars, `all words together take at most ${argvChars} characters`),
  label: shown.nullish(),
  phase: shown.nullish(),
  agent: ref.nullish(),
  task: ownTask,
  cwd: z
    .string()
    .min(1)
    .max(4_096)
    .refine((path) => !path.includes('\0'), 'it holds a zero byte')
    .nullish(),
  timeoutSeconds: z.number().int().min(1).max(3_600).nullish(),
})
export type CommandStepArgs = z.output<typeof command>
/** A command step that does not say how long it may take. */
export const commandStepSeconds = 600

const option = z.union([
  text.min(1).max(200),
  z.strictObject({ key: text.min(1).max(100), label: text.min(1).max(500) }),
])
const ask = z
  .strictObject({
    prompt: text.min(1).max(10_000),
    options: z.array(option).min(1).max(50).nullish(),
    multiple: z.boolean().nullish(),
  })
  .refine(
    ({ options }) => new Set(options?.map(optionKey)).size === (options?.length ?? 0),
    'two options have the same key',
  )
export type AskArgs = z.output<typeof ask>
export const optionKey = (of: z.output<typeof option>): string => (typeof of === 'string' ? of : of.key)

const checks = z.strictObject({
  branch: text.min(1).max(255).nullish(),
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

export const callArgs = { agent, gate: command, ask, checks } as const satisfies Record<CallKind, z.ZodType>

/** Returns why these arguments are none of this call; null when they are. */
export function misfitOfCall(kind: CallKind, args: unknown): string | null {
  const parsed = callArgs[kind].safeParse(args)
  if (parsed.success) return null
  const [issue] = parsed.error.issues
  const path = (issue?.path ?? []).map(String).join('.')
  return `${kind}: ${path === '' ? '' : `${path}: `}${issue?.message ?? 'invalid arguments'}.`
}
