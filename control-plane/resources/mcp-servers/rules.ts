import { mcpServer, type McpServer } from '../../../shared/runs/mcp-servers.ts'
import type { mcpTransports } from '../../../shared/api/mcp-servers.ts'

/** A workspace, and each agent, has so many. A run takes as many in all. */
export const mostServers = 50

interface Sent {
  transport: (typeof mcpTransports)[number]
  url?: string | null | undefined
  headers?: Record<string, string> | undefined
  command?: string | null | undefined
  args?: string[] | undefined
  env?: Record<string, string> | undefined
}

const ofPrograms = ['command', 'args', 'env'] as const
const ofAddresses = ['url', 'headers'] as const

/** The server that was sent, or which field of it does not fit. */
export function serverOf(sent: Sent): { server: McpServer } | { param: string; message: string } {
  const isProgram = sent.transport === 'stdio'
  const strange = (isProgram ? ofAddresses : ofPrograms).find((field) => isSet(sent[field]))
  if (strange !== undefined)
    return { param: strange, message: `A server whose transport is ${sent.transport} has none.` }
  const needed = isProgram ? 'command' : 'url'
  if (!isSet(sent[needed]))
    return { param: needed, message: `A server whose transport is ${sent.transport} needs one.` }
  const { transport: type, url, headers, command, args = [], env } = sent
  const read = mcpServer.safeParse(isProgram ? { type, command, args, env } : { type, url, headers })
  if (read.success) return { server: read.data }
  return { param: needed, message: 'An address begins with http:// or https://, or is made of variables.' }
}

const isSet = (value: unknown): boolean => {
  if (value === undefined || value === null) return false
  return typeof value !== 'object' || Object.keys(value).length > 0
}

/** The fields of a stored server, as they are sent. */
export const sentOf = (server: McpServer): Sent =>
  server.type === 'stdio'
    ? { transport: 'stdio', command: server.command, args: server.args, env: server.env }
    : { transport: server.type, url: server.url, headers: server.headers }
