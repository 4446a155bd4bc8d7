import { z } from 'zod'
import { resetTime } from '../parts/reset-time.ts'

// The lines of `codex app-server`: JSON-RPC without its version field, as 0.169.0 speaks it. Only what is read is named;
// the rest of a line is ignored.

const id = z.string().min(1).max(500)

export const codexReply = z.object({
  id: z.number(),
  result: z.unknown().optional(),
  error: z.object({ message: z.string() }).optional(),
})
export const threadResult = z.object({ thread: z.object({ id, model: z.string().nullish() }) })
export const turnResult = z.object({ turn: z.object({ id }) })

export const turnError = z.object({
  message: z.string(),
  codexErrorInfo: z.unknown().optional(),
  additionalDetails: z.string().nullish().catch(null),
})
export type TurnError = z.infer<typeof turnError>
export const errorNote = z.object({ error: turnError, willRetry: z.boolean(), threadId: id.nullish() })

export const warning = z.object({ message: z.string().max(10_000) })
export const configWarning = z.object({ summary: z.string().max(10_000), details: z.string().max(10_000).nullish() })

export const turnCompleted = z.object({
  threadId: id,
  turn: z.object({
    id,
    status: z.enum(['completed', 'interrupted', 'failed', 'inProgress']),
    error: turnError.nullish(),
  }),
})
export type CodexTurn = z.infer<typeof turnCompleted>['turn']

const tokens = z.number().int().nonnegative().catch(0)
export const tokenUsage = z.object({
  threadId: id,
  turnId: id,
  tokenUsage: z.object({
    /** Of the thread so far; only compared. */
    total: z.unknown().optional(),
    last: z.object({
      inputTokens: tokens,
      cachedInputTokens: tokens,
      cacheWriteInputTokens: tokens,
      outputTokens: tokens,
    }),
  }),
})

const limitWindow = z
  .object({
    usedPercent: z.number(),
    windowDurationMins: z.number().nullish().catch(null),
    resetsAt: resetTime.nullish().catch(null),
  })
  .nullish()
  .catch(null)
/** The account's windows, as far as codex knows them; a later note may leave one out. */
export const rateLimits = z.object({ rateLimits: z.object({ primary: limitWindow, secondary: limitWindow }) })
export type LimitWindow = z.infer<typeof limitWindow>

/** An item of a thread, when it begins and when it is done. */
export const itemNote = z.object({ threadId: id, item: z.looseObject({ id, type: z.string() }) })
export type Item = z.infer<typeof itemNote>['item']

/** The items that name threads of subagents. */
export const agentItem = z.discriminatedUnion('type', [
  z.object({ type: z.literal('collabAgentToolCall'), receiverThreadIds: z.array(id) }),
  z.object({ type: z.literal('subAgentActivity'), agentThreadId: id }),
])

/** The next letters of a message of the agent. */
export const messageDelta = z.object({ threadId: id, itemId: id, delta: z.string() })
export const messageItem = z.object({ text: z.string() })
export const reasoningItem = z.object({ summary: z.array(z.string()), content: z.array(z.string()).catch([]) })
export const commandItem = z.object({
  command: z.string(),
  status: z.string(),
  aggregatedOutput: z.string().nullish(),
  exitCode: z.number().nullish(),
})
export const fileChange = z.object({
  path: z.string(),
  kind: z.object({ type: z.string(), move_path: z.string().nullish() }),
  diff: z.string().catch(''),
})
export type FileChange = z.infer<typeof fileChange>
export const fileItem = z.object({ changes: z.array(fileChange), status: z.string() })
export const mcpItem = z.object({
  server: z.string(),
  tool: z.string(),
  status: z.string(),
  arguments: z.unknown().optional(),
  result: z.object({ content: z.array(z.unknown()) }).nullish(),
  error: z.object({ message: z.string() }).nullish(),
})

/** Parts of what comes whole in a later line, and what is for a screen. */
export const forScreens =
  /^(thread\/(started|status\/changed|name\/updated|goal\/.*|settings\/updated|environment\/.*|queue\/changed|closed)|app\/list\/updated|turn\/(started|diff\/updated|plan\/updated)|item\/.*([dD]elta|[pP]art[aA]dded|progress|terminalInteraction)|account\/.*|skills\/changed|serverRequest\/resolved|remoteControl\/.*|mcpServer\/startupStatus\/updated|deprecationNotice|hook\/.*)$/

/** A request of codex, which must be answered or the turn hangs. */
export const codexRequest = z.object({
  id: z.union([z.string(), z.number()]),
  method: z.string(),
  params: z.unknown().optional(),
})
export type CodexRequestId = z.infer<typeof codexRequest>['id']
const turnId = id.nullish().catch(null)
export const commandApproval = z.object({
  threadId: id,
  turnId,
  itemId: id,
  command: z.string().nullish(),
  cwd: z.string().nullish(),
})
export const fileApproval = z.object({ threadId: id, turnId, itemId: id })
export const elicitation = z.object({
  threadId: id,
  turnId,
  serverName: z.string(),
  _meta: z.object({
    codex_approval_kind: z.literal('mcp_tool_call'),
    tool_name: z.string().min(1),
    tool_params: z.unknown().optional(),
  }),
})
