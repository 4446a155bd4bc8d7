import { z } from 'zod'

// The lines of the Agent Client Protocol, version 1, as agents speak it. Only what is read is named; the rest is ignored.

const id = z.string().min(1).max(500)

export const acpReply = z.object({
  id: z.number(),
  result: z.unknown().optional(),
  error: z.object({ code: z.number(), message: z.string().catch(''), data: z.unknown().optional() }).optional(),
})
export type RpcError = NonNullable<z.infer<typeof acpReply>['error']>

/** A capability is there when it has a value, most often an empty object. */
const capability = z
  .unknown()
  .optional()
  .transform((value) => value !== undefined && value !== null && value !== false)
const noRemoteServers = { http: false, sse: false }
export const initialized = z.object({
  protocolVersion: z.number(),
  agentCapabilities: z
    .object({
      loadSession: z.boolean().catch(false),
      sessionCapabilities: z.object({ resume: capability }).catch({ resume: false }),
      mcpCapabilities: z.object({ http: capability, sse: capability }).catch(noRemoteServers),
    })
    .catch({ loadSession: false, sessionCapabilities: { resume: false }, mcpCapabilities: noRemoteServers }),
})
export const newSession = z.object({ sessionId: id.max(200) })

const tokens = z.number().int().nonnegative().nullish().catch(null)
export const promptResult = z.object({
  stopReason: z.string().max(200),
  usage: z
    .object({ inputTokens: tokens, outputTokens: tokens, cachedReadTokens: tokens, cachedWriteTokens: tokens })
    .nullish()
    .catch(null),
})

export type AcpUsage = NonNullable<z.infer<typeof promptResult>['usage']>

export const sessionUpdate = z.object({
  sessionId: id,
  update: z.looseObject({ sessionUpdate: z.string().max(200) }),
})
export const textChunk = z.object({ content: z.object({ type: z.literal('text'), text: z.string() }) })

const toolCallFields = {
  toolCallId: id,
  title: z.string().nullish().catch(null),
  kind: z.string().max(100).nullish().catch(null),
  status: z.string().max(100).nullish().catch(null),
  rawInput: z.unknown().optional(),
  rawOutput: z.unknown().optional(),
  content: z.array(z.unknown()).nullish().catch(null),
  _meta: z
    .looseObject({ toolName: z.string().max(200).nullish().catch(null) })
    .nullish()
    .catch(null),
}
export const toolCall = z.object(toolCallFields)
export type ToolCallUpdate = z.infer<typeof toolCall>
export const contentText = z.object({ type: z.literal('content'), content: z.object({ text: z.string() }) })

/** A request of the agent, which must be answered or its turn hangs. */
export const acpRequest = z.object({
  id: z.union([z.string().max(65_536), z.number(), z.null()]),
  method: z.string().catch(''),
  params: z.unknown().optional(),
})
export type AcpRequestId = z.infer<typeof acpRequest>['id']
export const permissionRequest = z.object({
  sessionId: id,
  toolCall,
  options: z.array(z.object({ optionId: id, kind: z.string().max(100) })).max(100),
})
export type PermissionRequest = z.infer<typeof permissionRequest>
