import { z } from 'zod'

// The lines of `cursor-agent -p --output-format stream-json`, as its pages and recorded streams have them. Only what is read is named.

const id = z.string().min(1).max(500)

export const cursorInitLine = z.object({
  type: z.literal('system'),
  subtype: z.literal('init'),
  session_id: id.max(200),
  model: z.string().max(200).nullish(),
})
export const cursorAssistantLine = z.object({
  /** Only the next letters have a time and no call of the model; all else repeats words, or has them all at once. */
  timestamp_ms: z.number().nullish().catch(null),
  model_call_id: z.string().nullish().catch(null),
  message: z.object({ content: z.array(z.looseObject({ type: z.string(), text: z.string().nullish() })) }),
})
export const thinkingLine = z.object({ subtype: z.string(), text: z.string().nullish() })
export const toolCallLine = z.object({
  subtype: z.enum(['started', 'completed']),
  call_id: id,
  /** `{ shellToolCall: { args, result } }`, with the name of the tool as its one key. */
  tool_call: z.record(z.string().max(100), z.unknown()),
})
export const toolCallBody = z.object({ args: z.unknown().optional(), result: z.unknown().optional() })

const tokens = z.number().int().nonnegative().catch(0)
export const cursorResultLine = z.object({
  subtype: z.string().max(100),
  is_error: z.boolean(),
  result: z.string().nullish(),
  usage: z
    .object({ inputTokens: tokens, outputTokens: tokens, cacheReadTokens: tokens, cacheWriteTokens: tokens })
    .nullish()
    .catch(null),
})
export type CursorResultLine = z.infer<typeof cursorResultLine>
