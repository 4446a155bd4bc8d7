import { z } from 'zod'

// The events and answers of `opencode serve` and the lines of svc's plugin, as 1.18.33 has them. Only what is read is named.

const id = z.string().min(1).max(500)

export const pluginLine = z.discriminatedUnion('svc', [
  z.object({ svc: z.literal('failed'), message: z.string() }),
  z.object({ svc: z.literal('ready'), directory: z.string().max(8_192), servers: z.array(z.string()).max(1_000) }),
  z.object({
    svc: z.literal('call'),
    id,
    tool: z.string().min(1).max(500),
    sessionID: id,
    callID: id,
    args: z.unknown(),
  }),
  z.object({
    svc: z.literal('turn'),
    id,
    sessionID: id,
    agent: z.string().max(500).catch(''),
    model: z.string().max(500).catch(''),
    isRetry: z.boolean(),
    isPublic: z.boolean(),
  }),
  z.object({
    svc: z.literal('retry'),
    message: z.string(),
    until: z.number().int().positive(),
    waitMs: z.number().nonnegative(),
  }),
])
export type PluginCall = Extract<z.infer<typeof pluginLine>, { svc: 'call' }>
export type PluginRetry = Extract<z.infer<typeof pluginLine>, { svc: 'retry' }>
export type PluginTurn = Extract<z.infer<typeof pluginLine>, { svc: 'turn' }>

const session = z.object({ id, directory: z.string() })
/** One that was made, or those of a folder. */
export const sessionAnswer = z.union([session, z.array(session)])

export const harnessError = z.object({
  name: z.string().max(500),
  data: z.object({ message: z.string().catch(''), statusCode: z.number().int().nullish() }).catch({ message: '' }),
})
export type HarnessError = z.infer<typeof harnessError>

export const event = z.object({ type: z.string().max(500), properties: z.unknown() })

export const sessionCreated = z.object({ info: z.object({ id, parentID: id.nullish() }) })
export const sessionIdle = z.object({ sessionID: id })
export const sessionError = z.object({ sessionID: id.nullish(), error: harnessError })
export const sessionStatus = z.object({
  sessionID: id,
  status: z.union([
    z.object({ type: z.literal('retry'), attempt: z.number().int(), message: z.string() }),
    z.object({ type: z.enum(['busy', 'idle']) }),
  ]),
})
export const permissionAsked = z.object({ id, sessionID: id, tool: z.object({ callID: id }).nullish() })
export const messageUpdated = z.object({
  info: z.object({ id, sessionID: id, role: z.string(), agent: z.string().nullish() }),
})
export const partUpdated = z.object({ part: z.looseObject({ id, sessionID: id, messageID: id, type: z.string() }) })

/** The next letters of a field of a part. In older versions the part comes anew, with all of them so far. */
export const partDelta = z.object({ sessionID: id, partID: id, field: z.string(), delta: z.string() })

const finished = z.object({ end: z.number().nullish() }).nullish()
export const wordsPart = z.object({ text: z.string(), synthetic: z.boolean().nullish(), time: finished })
const tokens = z.number().nonnegative().catch(0)
export const stepFinish = z.object({
  reason: z.string().max(100).catch('unknown'),
  cost: z.number().nonnegative().catch(0),
  tokens: z.object({
    input: tokens,
    output: tokens,
    reasoning: tokens,
    cache: z.object({ read: tokens, write: tokens }).catch({ read: 0, write: 0 }),
  }),
})
export const toolPart = z.object({
  id,
  tool: z.string().min(1).max(500),
  callID: id,
  state: z.object({
    status: z.enum(['pending', 'running', 'completed', 'error']),
    input: z.unknown(),
    output: z.string().nullish(),
    error: z.string().nullish(),
    metadata: z.object({ sessionId: id.nullish() }).nullish().catch(null),
  }),
})
export type ToolPart = z.infer<typeof toolPart>
