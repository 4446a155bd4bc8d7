import type { ToolCallUpdate } from './wire.ts'
import type { ServerLeftOut } from '../../../shared/runs/filled-servers.ts'
import type { McpServer, McpServers } from '../../../shared/runs/mcp-servers.ts'

/**
 * The servers as a session takes them. Every program takes those that are started; servers on the network only where it says
 * so (https://agentclientprotocol.com/protocol/session-setup#mcp-servers).
 */
export function serverListOf(
  servers: McpServers,
  can: Readonly<{ http: boolean; sse: boolean }>,
): { servers: object[]; leftOut: ServerLeftOut[] } {
  const all = Object.entries(servers)
  const isTaken = ({ type }: McpServer) => type === 'stdio' || can[type]
  return {
    servers: all.filter(([, server]) => isTaken(server)).map(([name, server]) => entryOf(name, server)),
    leftOut: all
      .filter(([, server]) => !isTaken(server))
      .map(([name]) => ({ name, why: 'the program does not speak its transport' })),
  }
}

function entryOf(name: string, server: McpServer): object {
  if (server.type !== 'stdio') return { type: server.type, name, url: server.url, headers: listOf(server.headers) }
  return { name, command: server.command, args: server.args, env: listOf(server.env) }
}

const listOf = (values: Readonly<Record<string, string>> = {}) =>
  Object.entries(values).map(([name, value]) => ({ name, value }))

/**
 * The name by which rules know a tool of a server that svc gave. The protocol has no field for it; Qwen Code says it in
 * `_meta.toolName`, which neither a server nor the model can choose beyond the tool's own part.
 */
export function mcpNameOf({ _meta: meta }: Pick<ToolCallUpdate, '_meta'>, servers: McpServers): string | null {
  const [, server, tool] = /^mcp__((?:(?!__).)+)__(.+)$/.exec(meta?.toolName ?? '') ?? []
  return server !== undefined && Object.hasOwn(servers, server) ? `mcp__${server}__${tool}` : null
}
