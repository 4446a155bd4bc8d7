import { z } from 'zod'
import { resetTime } from '../parts/reset-time.ts'

// The lines of `claude --output-format stream-json` that mean something here, as seen in 2.1.197 and 2.1.329. Only the
// fields that are used are named; a line that does not fit is kept raw.

const id = z.string().min(1).max(500)
const count = z.number().int().nonnegative().catch(0)
/** No run costs more; what says so is wrong, and could not be written as a decimal. */
const dollars = z.number().nonnegative().max(1e9).catch(0)
const status = z.number().int().nullish().catch(null)
const parent = z.string().max(500).nullish().catch(null)

/** The sessions that a line names: its own, and the one in the question of a hook. */
export function sessionsOf(line: Record<string, unknown>): unknown[] {
  const question = line['type'] === 'control_request' ? hookSession.safeParse(line) : null
  return [line['session_id'], question?.data?.request.input.session_id].filter((id) => id != null)
}
const hookSession = z.object({
  request: z.object({ subtype: z.literal('hook_callback'), input: z.object({ session_id: z.unknown() }) }),
})

export const claudeInitLine = z.object({
  session_id: id,
  model: z.string().max(500).optional(),
  claude_code_version: z.string().max(100).optional(),
})

export const retryLine = z.object({
  attempt: z.number().int(),
  max_retries: z.number().int(),
  retry_delay_ms: z.number(),
  error_status: status,
  error: z.string().max(200).catch('unknown'),
})

/** The part of a window that is used; some go beyond all of it. */
const utilization = z.number().nonnegative().max(10)
const limitWindow = z.object({ utilization, resetsAt: resetTime }).nullish().catch(null)

/** The account's limit, whenever claude learns something of it. */
export const rateLimitLine = z.object({
  rate_limit_info: z.object({
    status: z.string().max(200),
    resetsAt: resetTime.nullish().catch(null),
    /** Of the window that counts now; versions that tell all windows do it in `unifiedWindows`. */
    rateLimitType: z.string().max(200).nullish().catch(null),
    utilization: utilization.nullish().catch(null),
    unifiedWindows: z
      .object({
        five_hour: limitWindow,
        seven_day: limitWindow,
        seven_day_opus: limitWindow,
        seven_day_sonnet: limitWindow,
      })
      .nullish()
      .catch(null),
  }),
})

const messageUsage = z.object({
  input_tokens: count,
  output_tokens: count,
  cache_creation_input_tokens: count,
  cache_read_input_tokens: count,
})
export type MessageUsage = z.infer<typeof messageUsage>

export const claudeAssistantLine = z.object({
  message: z.object({
    id: id.optional(),
    content: z.array(z.unknown()),
    usage: messageUsage.optional().catch(undefined),
  }),
  parent_tool_use_id: parent,
  /** The class of a failed request to the model; the content is then a sentence about it. */
  error: z.string().max(200).nullish(),
  api_error_status: status,
})

export const userLine = z.object({
  message: z.object({ content: z.array(z.unknown()) }),
  parent_tool_use_id: parent,
})

export const textBlock = z.object({ type: z.literal('text'), text: z.string() })
export const thinkingBlock = z.object({ type: z.literal('thinking'), thinking: z.string() })
export const toolUseBlock = z.object({
  type: z.enum(['tool_use', 'server_tool_use', 'mcp_tool_use']),
  id,
  name: z.string().max(500),
  input: z.unknown(),
})
export const toolResultBlock = z.object({
  type: z.string().regex(/^(.+_)?tool_result$/),
  tool_use_id: id,
  content: z.unknown(),
  is_error: z.boolean().nullish().catch(null),
})

/** The model's answer as it is made: which message begins, and the next letters of one of its blocks. */
export const streamLine = z.object({
  event: z.union([
    z.object({ type: z.literal('message_start'), message: z.object({ id }) }),
    z.object({
      type: z.literal('content_block_delta'),
      index: z.number().int().nonnegative(),
      delta: z.union([
        z.object({ type: z.literal('text_delta'), text: z.string() }),
        z.object({ type: z.literal('thinking_delta'), thinking: z.string() }),
      ]),
    }),
  ]),
  parent_tool_use_id: parent,
})

const modelUsage = z.record(
  z.string(),
  z.object({
    inputTokens: count,
    outputTokens: count,
    cacheReadInputTokens: count,
    cacheCreationInputTokens: count,
    costUSD: dollars,
  }),
)
export type ModelUsage = z.infer<typeof modelUsage>

export const claudeResultLine = z.object({
  uuid: id.nullish().catch(null),
  subtype: z.string().max(200),
  is_error: z.boolean().catch(false),
  result: z.string().optional().catch(undefined),
  errors: z.array(z.string()).optional().catch(undefined),
  stop_reason: z.string().max(200).nullish().catch(null),
  terminal_reason: z.string().max(200).nullish().catch(null),
  api_error_status: status,
  usage: messageUsage.optional().catch(undefined),
  total_cost_usd: dollars,
  modelUsage: modelUsage.optional().catch(undefined),
  model_usage_since_last_result: modelUsage.optional().catch(undefined),
  /** Turns that wait because their message came too late for this one. */
  queued_turn_count: count,
})
export type ClaudeResultLine = z.infer<typeof claudeResultLine>

export const controlRequest = z.object({
  request_id: id,
  request: z.looseObject({ subtype: z.string().max(200) }),
})
/** The question of the hook, before every tool call. */
export const hookCallback = z.object({
  callback_id: z.string(),
  tool_use_id: id.nullish(),
  input: z.object({
    tool_name: z.string().min(1).max(500),
    tool_input: z.unknown(),
    tool_use_id: id.nullish(),
    /** The folder of its shell now, which a command before may have left. */
    cwd: z.string().nullish().catch(null),
  }),
})
/** claude's own question, where its rules or a person's settings want one although the hook has decided. */
export const canUseTool = z.object({
  tool_name: z.string().min(1).max(500),
  input: z.unknown(),
  tool_use_id: id.nullish(),
})
export const controlResponse = z.object({
  response: z.object({
    subtype: z.string(),
    request_id: z.string(),
    error: z.string().optional(),
    /** false: the hook was not installed. Older versions do not say. */
    response: z.object({ hooks_applied: z.boolean().optional() }).optional(),
  }),
})
export const controlCancel = z.object({ request_id: id })
