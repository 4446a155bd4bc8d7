import { z } from 'zod'
import type { McpServer, McpServers } from '../../../shared/runs/mcp-servers.ts'
import type { ServerLeftOut } from '../../../shared/runs/filled-servers.ts'

/** The part of codex's settings that is read: the servers of the person. */
const settingsRead = z.object({
  config: z.object({
    mcp_servers: z.record(z.string(), z.looseObject({ tools: z.record(z.string(), z.unknown()).nullish() })).nullish(),
  }),
})

/** Else codex does not ask about a tool of which its server says that it only reads, or which a person's settings allow. */
const asked = { default_tools_approval_mode: 'prompt' } as const

/**
 * Settings of a thread that add the workspace's servers to those of the person, and have the tools of both asked where lists
 * have a say. codex would mix two servers of one name, so the person's own stays. null: nothing that is understood.
 */
export function threadConfig(
  read: unknown,
  { servers, checksCalls }: { servers: McpServers; checksCalls: boolean },
): { config: Record<string, unknown>; leftOut: ServerLeftOut[] } | null {
  const parsed = settingsRead.safeParse(read)
  if (!parsed.success) return null
  const theirs = parsed.data.config.mcp_servers ?? {}
  const isTheirs = (name: string) => Object.hasOwn(theirs, name)
  const added = Object.entries(servers).filter(([name]) => !isTheirs(name))
  const tables = [
    ...added.map(([name, server]) => [name, tableOf(server)] as const),
    ...(checksCalls ? Object.entries(theirs) : []).map(([name, { tools }]) => [name, askedAbout(tools ?? {})] as const),
  ]
  const why = 'the settings of the person for codex have one of this name'
  return {
    config: {
      ...(tables.length > 0 && { mcp_servers: Object.fromEntries(tables) }),
      ...(added.length > 0 && { mcp_optional_startup_grace_ms: startMs }),
    },
    leftOut: Object.keys(servers)
      .filter(isTheirs)
      .map((name) => ({ name, why })),
  }
}

/** codex gives a server 10 s to start, but begins its first turn without it after about one: many are fetched when they start. */
const startMs = 30_000

function tableOf(server: McpServer): object {
  const common = { ...asked, startup_timeout_sec: startMs / 1_000 }
  if (server.type !== 'stdio')
    return { ...common, url: server.url, ...(server.headers && { http_headers: server.headers }) }
  const { command, args, env } = server
  return { ...common, command, args, ...(env && { env }) }
}

function askedAbout(tools: Readonly<Record<string, unknown>>): object {
  const names = Object.keys(tools)
  const each = Object.fromEntries(names.map((name) => [name, { approval_mode: 'prompt' }]))
  return { ...asked, ...(names.length > 0 && { tools: each }) }
}
