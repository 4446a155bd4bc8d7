import type { ConnectionId } from '../lib/ids.ts'
import { idIn } from '../lib/id-schema.ts'
import { z } from 'zod'

// MCP servers that a workspace gives to its runs. A workspace keeps whatever was sent to it; given-servers.ts says which of it
// a run gets. Values may hold `${NAME}` and `${NAME:-otherwise}`, which the device fills in from the run's environment.

export const mcpLimits = {
  servers: 50,
  /** The characters of all servers of a run together, as JSON. */
  totalChars: 64 * 1024,
  valueChars: 16_384,
  args: 100,
  variables: 100,
  headers: 50,
  /** The servers that are told by name, of those that are left out. */
  told: 100,
} as const

/** Programs take no zero bytes. */
export const mcpValue = z
  .string()
  .max(mcpLimits.valueChars)
  .regex(/^[^\0]*$/)
const named = (name: RegExp, most: number) =>
  z
    .record(z.string().regex(name), mcpValue)
    .refine((entries) => Object.keys(entries).length <= most, `more than ${most}`)
export const mcpVariables = named(/^[A-Za-z_][A-Za-z0-9_]{0,199}$/, mcpLimits.variables)
export const mcpHeaders = named(/^[!#$%&'*+.^_`|~A-Za-z0-9-]{1,200}$/, mcpLimits.headers)
const notRead = z.never().optional()
export const mcpConnectionId = idIn<ConnectionId>(z.string().regex(/^conn_[0-9A-Za-z]{1,64}$/, 'must be a `conn_` id'))

const stdioServer = z.object({
  type: z.literal('stdio'),
  command: mcpValue.min(1),
  args: z.array(mcpValue).max(mcpLimits.args).default([]),
  env: mcpVariables.optional(),
  url: notRead,
})
const remoteServer = z.object({
  type: z.enum(['http', 'sse']),
  /** The device checks what the variables of a run make of it. */
  url: mcpValue.regex(/^https?:\/\/.|\$\{/i),
  headers: mcpHeaders.optional(),
  /** The connection whose credential the device adds to requests. The device asks for it when it needs it. */
  connectionId: mcpConnectionId.optional(),
  /** An admin lets agents have the skills that the server offers. */
  trustSkills: z.boolean().optional(),
  command: notRead,
})
/** A server as a run gets it. Unknown keys are ignored. */
export const mcpServer = z.discriminatedUnion('type', [stdioServer, remoteServer])
export type McpServer = z.infer<typeof mcpServer>
export type McpServers = Readonly<Record<string, McpServer>>

/**
 * A name that stays whole in `mcp__<name>__<tool>`, by which rules are judged: with `__` in it, or `_` at its end, one such
 * name could be of two servers.
 */
export const mcpServerName = /^(?!.*__)[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9-])?$/
export const mcpServers = z.record(z.string().regex(mcpServerName), mcpServer)

const reasons = {
  harness: 'the harness takes no MCP servers from svc',
  unasked: 'the harness takes MCP servers from svc only where the permissions of the agent make it ask',
  name: 'a name is made of up to 64 letters, digits, - and _, without __ and without _ at the end',
  ambiguous: 'rules could not tell its tools from those of another server with nearly the same name',
  disabled: 'it is switched off by `disabled` or `enabled`',
  unreadable: 'it is neither {command, args, env} nor {type: "http" or "sse", url, headers}',
  transport: 'the harness does not speak its transport',
  too_many: `a run takes ${mcpLimits.servers} servers`,
  too_large: `the servers of a run have ${mcpLimits.totalChars} characters together`,
} as const
export type McpLeftOutReason = keyof typeof reasons
export const mcpLeftOutReasons = Object.keys(reasons) as [McpLeftOutReason, ...McpLeftOutReason[]]
/** Says the reason in words for people. */
export const sayLeftOut = (reason: McpLeftOutReason): string => reasons[reason]

export interface McpLeftOut {
  name: string
  reason: McpLeftOutReason
}
