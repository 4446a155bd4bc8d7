import { z } from 'zod'

// Words of approvals and questions, apart from the routes so that stores need not load those.

/** Triggers whose name is that of the gated thing, too. */
const sameKinds = ['connection_action', 'learning_review', 'instruction_publish', 'platform_change'] as const

export const approvalTriggers = ['tool_permission', 'budget_breach', ...sameKinds] as const
export type ApprovalTrigger = (typeof approvalTriggers)[number]

export const gatedKinds = ['tool_call', 'budget', ...sameKinds] as const
export type GatedKind = (typeof gatedKinds)[number]

export const holdStatuses = ['open', 'resolved'] as const
export const approvalOutcomes = ['approve', 'reject', 'expired'] as const
export const approvalScopes = ['once', 'always'] as const
export type ApprovalScope = (typeof approvalScopes)[number]

/** A new text for an agent's AGENT.md. */
export const proposedInstructions = z.object({
  agentId: z.string().describe('The agent whose AGENT.md it is.'),
  agentMd: z.string(),
  agentMdHash: z.string().describe('Hash of the text it replaces.'),
})

export const storedGatedThing = z.object({
  kind: z.enum(gatedKinds),
  name: z.string(),
  inputDigest: z.string().nullable().describe('Fingerprint of the exact call.'),
  safeSummary: z.string(),
  scope: z.enum(approvalScopes).describe('What the raiser proposes.'),
  toolArgs: z.unknown().optional().describe('Arguments of a tool call, secrets masked.'),
  instructions: proposedInstructions.optional().describe('The proposed text of an `instruction_publish`.'),
})
export type StoredGatedThing = z.infer<typeof storedGatedThing>

export const answerModes = ['free_text', 'single_select', 'multi_select', 'secret_input'] as const
export type AnswerMode = (typeof answerModes)[number]

export const questionOption = z.object({ key: z.string(), label: z.string() }).meta({ id: 'QuestionOption' })
export const questionAnswer = z.object({
  text: z.string().nullable(),
  selected: z.array(z.string()).nullable().describe('Keys of options; null for `free_text`.'),
})
export type QuestionAnswer = z.infer<typeof questionAnswer>
export const secretRequest = z
  .object({
    name: z.string(),
    provider: z.string(),
    envVarName: z.string(),
    reason: z.string(),
  })
  .meta({ id: 'SecretRequest' })
export type SecretRequest = z.infer<typeof secretRequest>
