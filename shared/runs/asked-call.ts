import { z } from 'zod'

/** Limits of a tool call that a person is asked about. One such call must fit into the header of a frame. */
export const askedCallLimits = {
  /** The different calls about which a run may ask. */
  calls: 20,
  idChars: 200,
  nameChars: 200,
  summaryChars: 300,
  promptChars: 2_000,
  /** Size of `toolArgs` as JSON in UTF-8. */
  argsBytes: 16 * 1024,
} as const

/** SHA-256 (hex) over the tool's name and its input (call-identity.ts): the fingerprint of the exact call. */
export const inputDigest = z.string().regex(/^[0-9a-f]{64}$/)

const shown = {
  inputDigest,
  /** A summary of one line. */
  safeSummary: z.string().min(1).max(askedCallLimits.summaryChars),
  /** The input as a person may see it: without secrets, and cut where it is long (`inputDigest` covers all of it). */
  toolArgs: z
    .record(z.string(), z.unknown())
    .refine((args) => new TextEncoder().encode(JSON.stringify(args)).length <= askedCallLimits.argsBytes, {
      message: `more than ${askedCallLimits.argsBytes} bytes`,
    }),
  /** The text for the person. */
  prompt: z.string().min(1).max(askedCallLimits.promptChars),
}

/** The part of an ask's event beside the call's name and id. */
export const askDetails = z.object(shown)

/** A tool call that the agent's permissions say must be asked; it becomes a `tool_permission` approval. */
export const askedCall = z.object({
  toolCallId: z.string().max(askedCallLimits.idChars).nullable(),
  name: z.string().min(1).max(askedCallLimits.nameChars),
  ...shown,
})
export type AskedCall = z.infer<typeof askedCall>
