import { z } from 'zod'

// The words of workflows that the contract, the checks of programs and their engine share.

export const inputKinds = ['text', 'number', 'boolean', 'task', 'agent'] as const

/** Says how far the steps of a workflow may go without asking; an agent's own mode is never loosened by it. */
export const toolModes = ['ask', 'full'] as const
export type ToolMode = (typeof toolModes)[number]

export const workflowRunStatuses = ['running', 'completed', 'failed', 'stalled'] as const

export const stepStates = ['dispatched', 'waiting', 'resumed', 'done'] as const
export type StepState = (typeof stepStates)[number]

export const workflowName = z
  .string()
  .min(1)
  .max(128)
  .regex(/^[a-z][a-z0-9_]*$/, 'must be lower-case letters, digits and underscores, a letter first')

/** The characters of a program. */
export const maxSourceChars = 200_000

/** The codes of the reasons for which a program is refused. */
export const flawCodes = [
  'workflow_syntax',
  'workflow_import',
  'workflow_banned_global',
  'workflow_meta_missing',
  'workflow_meta_not_literal',
  'workflow_meta_invalid',
] as const
export type FlawCode = (typeof flawCodes)[number]
